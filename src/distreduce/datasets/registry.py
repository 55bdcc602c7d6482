"""The seven sets of the paper that live in files: origins, hashes, licences."""

from __future__ import annotations

from distreduce.datasets import origins
from distreduce.datasets.file_set import FileSet, RemoteFile

UCI = "https://archive.ics.uci.edu"
SCOT = "https://raw.githubusercontent.com/rsinghlab/SCOT/14649be6e14017dcfe7ba619091b33d1df55f6a9/data/SNARE"
FASHION = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/b2617bb6d3ffa2e429640350f613e3291e10b141"
COIL = "databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip"
T10K = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")


def _mnist_like(folders: tuple[str, ...], sizes: tuple[int, int], sums: tuple[str, str]) -> tuple[RemoteFile, ...]:
    facts = zip(T10K, sizes, sums, strict=True)
    return tuple(RemoteFile(name, size, total, tuple(f + name for f in folders)) for name, size, total in facts)


BOSTON = FileSet(
    name="boston",
    file="boston.csv",
    sha256="7ece4514ca43e3202f754c37b180517aeab0a3929d4db3b5f04d6714c956d4e7",
    arrays=("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT", "MEDV"),
    shape=(506, 13),
    task="regression",
    target_names=("MEDV",),
    remote=(
        RemoteFile(
            "housing.data",
            49_082,
            "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a",
            (
                f"{UCI}/ml/machine-learning-databases/housing/housing.data",
                "https://raw.githubusercontent.com/geekcomputers/Python/2c362ff60c69d90f06045862349473bf7b99c324/"
                "housing.data",
            ),
        ),
    ),
    parse=origins.table_of_numbers,
    description=(
        "Median value of homes (in 1000 USD, cut off at 50) in 506 census tracts around Boston, 1970. Kept because the "
        "paper uses it: its column B encodes the share of Black residents under an assumption that should not be made; "
        "do not use it for anything but comparing methods."
    ),
    licence="none stated by the origin (StatLib, UCI)",
    citation=(
        "D. Harrison and D. L. Rubinfeld (1978). Hedonic prices and the demand for clean air. J. Environ. Economics "
        "and Management 5, 81–102."
    ),
)

CONCRETE = FileSet(
    name="concrete",
    file="concrete.csv",
    sha256="1e231d19e7723c7383d2f8456e1f23e5dfe7db4b8bc852dabcf04315d3434334",
    arrays=(
        "cement", "slag", "fly_ash", "water", "superplasticizer", "coarse_aggregate", "fine_aggregate", "age",
        "strength",
    ),
    shape=(1030, 8),
    task="regression",
    target_names=("strength",),
    remote=(
        RemoteFile(
            "data.csv",
            41_472,
            "8d4b15b6fc68cd932d745cbd663d5ceae66dd54422e99c1e4865f2936ab7e2af",
            (f"{UCI}/static/public/165/data.csv",),
        ),
    ),
    parse=origins.table_with_header,
    description="Compressive strength (MPa) of 1030 concretes by ingredients (kg/m³) and age (days).",
    licence="CC BY 4.0",
    citation=(
        "I.-C. Yeh (1998). Modeling of strength of high-performance concrete using artificial neural networks. Cement "
        "and Concrete Research 28, 1797–1808. UCI Machine Learning Repository, doi:10.24432/C5PK67."
    ),
)  # fmt: skip

ENERGY = FileSet(
    name="energy",
    file="energy.csv",
    sha256="0a906b6cf64b5e768d44780bbaa7640c982c2c674f30df41597e947365ceec24",
    arrays=(
        "compactness", "surface_area", "wall_area", "roof_area", "height", "orientation", "glazing_area",
        "glazing_distribution", "heating_load", "cooling_load",
    ),
    shape=(768, 8),
    task="regression",
    target_names=("heating_load", "cooling_load"),
    remote=(
        RemoteFile(
            "data.csv",
            39_946,
            "db44dbe453acd464b5cf65be2fb01a28aa9c5b2630300e65fbe28cde35f5d96f",
            (f"{UCI}/static/public/242/data.csv",),
        ),
    ),
    parse=origins.table_with_header,
    description="Heating and cooling load (kWh/m²) of 768 simulated buildings of twelve shapes.",
    licence="CC BY 4.0",
    citation=(
        "A. Tsanas and A. Xifara (2012). Accurate quantitative estimation of energy performance of residential "
        "buildings using statistical machine learning tools. Energy and Buildings 49, 560–567. UCI Machine Learning "
        "Repository, doi:10.24432/C51307."
    ),
)  # fmt: skip

COIL20 = FileSet(
    name="coil20",
    file="coil20.npz",
    sha256="af9df625ffbbd626d442143b9433dc0c44d7b183fa54a0b784dbdaae4889f93b",
    arrays=("images", "labels", "angles"),
    shape=(1440, 128 * 128),
    task="classification",
    target_names=("object",),
    remote=(
        RemoteFile(
            "coil-20-proc.zip",
            12_200_000,
            "517c5594820eb40066ba0ff6842e7f09392bf7fde849bf9cb9c28445b0f29e88",
            (f"https://www.cs.columbia.edu/CAVE/{COIL}", f"https://cave.cs.columbia.edu/old/{COIL}"),
        ),
    ),
    parse=origins.coil20_pictures,
    description="Grey pictures of 20 objects on a turntable, 72 of each: one every 5 degrees.",
    licence="none stated; offered by Columbia University for research",
    citation=(
        "S. A. Nene, S. K. Nayar and H. Murase (1996). Columbia Object Image Library (COIL-20). Technical Report "
        "CUCS-005-96, Columbia University."
    ),
    class_names=tuple(f"obj{number}" for number in range(1, 21)),
    image_shape=(128, 128),
)

MNIST = FileSet(
    name="mnist",
    file="mnist_t10k.npz",
    sha256="019f0a166d12727a16ab199dd227dfa586d928ba98b1af7a3543e61271701192",
    arrays=("images", "labels"),
    shape=(10_000, 28 * 28),
    task="classification",
    target_names=("digit",),
    remote=_mnist_like(
        ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
        (1_648_877, 4_542),
        (
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
    parse=origins.images_and_labels,
    description="Handwritten digits: the test split of MNIST. The paper's MNIST-2k is 2000 of them for each seed.",
    licence="CC BY-SA 3.0",
    citation=(
        "Y. LeCun, L. Bottou, Y. Bengio and P. Haffner (1998). Gradient-based learning applied to document "
        "recognition. Proc. IEEE 86, 2278–2324."
    ),
    class_names=tuple(str(digit) for digit in range(10)),
    image_shape=(28, 28),
)

FASHION_MNIST = FileSet(
    name="fashion_mnist",
    file="fashion_mnist_t10k.npz",
    sha256="08908568b2ecc6f7778180bc10cd0d5c2b6f59d615883c3a3bc76a99d13465c4",
    arrays=("images", "labels"),
    shape=(10_000, 28 * 28),
    task="classification",
    target_names=("article",),
    remote=_mnist_like(
        (f"{FASHION}/data/fashion/", "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"),
        (4_422_102, 5_148),
        (
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
    ),
    parse=origins.images_and_labels,
    description="Grey pictures of clothes: the test split of Fashion-MNIST.",
    licence="MIT",
    citation=(
        "H. Xiao, K. Rasul and R. Vollgraf (2017). Fashion-MNIST: a novel image dataset for benchmarking machine "
        "learning algorithms. arXiv:1708.07747."
    ),
    class_names=(
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ),
    image_shape=(28, 28),
)  # fmt: skip

SNARESEQ = FileSet(
    name="snareseq",
    file="snareseq.npz",
    sha256="d3d21be6dc17435ef9e754856f80ff952de8d2fbb69fceac686057f88adce018",
    arrays=("chromatin", "expression", "labels"),
    shape=(1047, 19),
    task="classification",
    target_names=("cell_line",),
    remote=(
        RemoteFile(
            "SNAREseq_atac_feat.npy",
            159_272,
            "80d685b6517c100a7fd612846ad38209b64ed9caf095d1630af5a1d7797bd79c",
            (f"{SCOT}/SNAREseq_atac_feat.npy",),
        ),
        RemoteFile(
            "SNAREseq_rna_feat.npy",
            83_888,
            "a8a2c2bbfc036dea5b350d01dd2180b93bb3b1c0008bed49493080348da96a9b",
            (f"{SCOT}/SNAREseq_rna_feat.npy",),
        ),
        RemoteFile(
            "SNAREseq_rna_types.txt",
            3_139,
            "3697fe94aee8b0ed2fad49c10c3226b757cedd8046a5cc0b10d0a845ad540a1d",
            (f"{SCOT}/SNAREseq_rna_types.txt",),
        ),
    ),
    parse=origins.scot_arrays,
    description=(
        "Chromatin accessibility of 1047 cells of four human cell lines, measured by SNARE-seq (GSE126074), as the 19 "
        "features that SCOT reduced it to. The same file holds 10 components of the gene expression."
    ),
    licence="MIT (files of SCOT); GEO accession GSE126074",
    citation=(
        "S. Chen, B. B. Lake and K. Zhang (2019). High-throughput sequencing of the transcriptome and chromatin "
        "accessibility in the same cell. Nature Biotechnology 37, 1452–1457. Reduced by P. Demetci et al. (2022). "
        "SCOT: single-cell multi-omics alignment with optimal transport. J. Computational Biology 29, 3–18."
    ),
    class_names=("H1", "GM", "BJ", "K562"),
)

FILE_SETS: dict[str, FileSet] = {
    spec.name: spec for spec in (BOSTON, CONCRETE, ENERGY, COIL20, MNIST, FASHION_MNIST, SNARESEQ)
}
