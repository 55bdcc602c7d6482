"""Save and load fitted models: one safetensors file with the arrays, and JSON in its metadata. No pickle.

The metadata key ``distreduce`` holds a JSON text: format and version, class, versions of the libraries that wrote the
file, a checksum, and the `state` of the model, which says what each tensor is. Reading never executes anything from the
file: classes, kernels and losses are looked up in tables of this package.

What each class saves is declared in :data:`REGISTRY`, in the schema language of ``_schema``.

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
from distreduce.persistence._files import FORMAT_VERSION, load, save
from distreduce.persistence._models import REGISTRY

__all__ = ["FORMAT_VERSION", "MAX_BYTES", "REGISTRY", "load", "save"]
