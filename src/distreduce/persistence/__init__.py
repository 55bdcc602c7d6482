"""Save and load fitted models: one safetensors file with the arrays, and JSON in its metadata. No pickle.

The file holds tensors and, under the metadata key ``distreduce``, a JSON text: format name and version, class, versions
of the libraries that wrote it, a checksum, and the `state` of the model, which says what each tensor is. Reading never
runs code from the file: classes, kernels and losses are looked up in tables that stand in this package.

A class takes part by an entry in :data:`REGISTRY` and two functions, ``to_state`` and ``from_state`` (see
:class:`Codec`); `Writer` and `Reader` turn values into JSON and tensors and back.

Examples
--------
>>> import tempfile
>>> from pathlib import Path
>>> from sklearn.datasets import load_iris
>>> from distreduce import SDR
>>> X, y = load_iris(return_X_y=True)
>>> model = SDR(n_prototypes=5, random_state=0).fit(X, y)
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "iris.safetensors"
...     model.save(path)
...     again = SDR.load(path)
>>> bool((again.transform(X) == model.transform(X)).all())
True
"""

from distreduce._utils.tensor_file import MAX_BYTES
from distreduce._utils.tensor_reader import Reader, require
from distreduce._utils.tensor_writer import Writer
from distreduce.persistence._models import FORMAT_VERSION, REGISTRY, Codec, Entry, load, save

__all__ = ["FORMAT_VERSION", "MAX_BYTES", "REGISTRY", "Codec", "Entry", "Reader", "Writer", "load", "require", "save"]
