"""The nine data sets of the ERM paper: what they are, what their files are called, where they come from."""

from __future__ import annotations

from dataclasses import dataclass

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
"""The LIBSVM site's data sets with two classes."""


@dataclass(frozen=True)
class RemoteFile:
    """A file that can be downloaded.

    Attributes
    ----------
    url : str
    sha256 : tuple of str
        The checksums to accept.
    n_bytes : int
        The size of the (largest) file that they belong to.
    """

    url: str
    sha256: tuple[str, ...]
    n_bytes: int


@dataclass(frozen=True)
class DatasetInfo:
    """What is known about a data set before it is read.

    Attributes
    ----------
    name : str
        What ``load_dataset`` calls it.
    title : str
        What it is about.
    n_rows, n_features, n_positive : int
        Its size, and the number of rows of class +1, in the version of the LIBSVM site.
    classes : str
        What +1 and -1 mean.
    scaled_files, raw_files : tuple of str
        The names of LIBSVM files with features in [-1, 1], and with the original values. No raw files:
        there are no original values to be had.
    licence : str
        The terms of the data themselves, whatever those of a copy.
    feature_names : tuple of str, or None
    remote : RemoteFile, or None
        The LIBSVM site's copy of the first scaled file, where the checksum of its bytes is known.
    by_hand : str or None
        An address from which a user can fetch the set, unchecked, where there is no better way.
    """

    name: str
    title: str
    n_rows: int
    n_features: int
    n_positive: int
    classes: str
    scaled_files: tuple[str, ...]
    raw_files: tuple[str, ...]
    licence: str
    feature_names: tuple[str, ...] | None = None
    remote: RemoteFile | None = None
    by_hand: str | None = None


def _uci(doi: str) -> str:
    return f"CC BY 4.0 (UCI Machine Learning Repository, doi:10.24432/{doi})"


_HEART = (
    "age sex chest_pain_type resting_blood_pressure serum_cholesterol fasting_blood_sugar resting_ecg "
    "max_heart_rate exercise_angina oldpeak st_slope major_vessels thal"
)

_SETS = (
    DatasetInfo(
        name="sonar",
        title="Connectionist Bench (Sonar, Mines vs. Rocks)",
        n_rows=208,
        n_features=60,
        n_positive=97,
        classes="+1 = rock, -1 = mine",
        scaled_files=("sonar_scale",),
        raw_files=("sonar",),
        licence=_uci("C5T01Q"),
        remote=RemoteFile(
            SITE + "sonar_scale",
            # The copy that the checksum was taken from had no newline at its end; the site may have one.
            (
                "5d820b62d9873f13b283738971b02aef67900fcd98b310c8e77eca3d0dc53daa",
                "037cfd45bb601292b0ecfa6d21ac0ebe61564d85cfe6d4dd61f221b9157174c5",
            ),
            156_001,
        ),
    ),
    DatasetInfo(
        name="german",
        title="Statlog (German Credit Data), numeric version",
        n_rows=1000,
        n_features=24,
        n_positive=300,
        classes="+1 = bad credit, -1 = good credit",
        scaled_files=("german.numer_scale",),
        raw_files=("german.numer",),
        licence=_uci("C5NC77"),
        remote=RemoteFile(
            SITE + "german.numer_scale",
            ("97637cc6b994bd3fa78999c771bc044bea7a0cdf91d43b6ecfd10f7e7c4ebc82",),
            165_393,
        ),
    ),
    DatasetInfo(
        name="australian",
        title="Statlog (Australian Credit Approval)",
        n_rows=690,
        n_features=14,
        n_positive=307,
        classes="+1 = class 1, -1 = class 0 (credit approval, anonymised)",
        scaled_files=("australian_scale",),
        raw_files=("australian",),
        licence=_uci("C59012"),
        remote=RemoteFile(
            SITE + "australian_scale",
            ("86799bcc4dbcd41929a514fa181d1c1a40e01f009dee139d4141a194d7ecd9e3",),
            71_160,
        ),
    ),
    DatasetInfo(
        name="ijcnn1",
        title="IJCNN 2001 challenge, features of the winner, training and validation rows",
        n_rows=49_990,
        n_features=22,
        n_positive=4853,
        classes="+1 and -1 as in the challenge (one row in ten is +1)",
        scaled_files=("ijcnn1.train", "ijcnn1"),
        raw_files=(),
        licence="none stated (published on the LIBSVM site)",
        by_hand=SITE + "ijcnn1.bz2",
    ),
    DatasetInfo(
        name="heart",
        title="Statlog (Heart)",
        n_rows=270,
        n_features=13,
        n_positive=120,
        classes="+1 = heart disease present, -1 = absent",
        scaled_files=("heart_scale",),
        raw_files=("heart",),
        licence=_uci("C57303"),
        feature_names=tuple(_HEART.split()),
        remote=RemoteFile(
            SITE + "heart_scale",
            ("5defa0a4c4c5bdaf3f55ae3828310252e8565c13ee37ce279e0b86d82e7f4ce9",),
            27_670,
        ),
    ),
    DatasetInfo(
        name="ionosphere",
        title="Ionosphere",
        n_rows=351,
        n_features=34,
        n_positive=225,
        classes="+1 = good radar return, -1 = bad",
        scaled_files=("ionosphere_scale",),
        raw_files=("ionosphere",),
        licence=_uci("C5W01B"),
        remote=RemoteFile(
            SITE + "ionosphere_scale",
            ("f7751584264819b6ea908d513180cec6f9d9fad0d54e7f5693407da1e2eaece1",),
            102_170,
        ),
    ),
    DatasetInfo(
        name="diabetes",
        title="Pima Indians Diabetes",
        n_rows=768,
        n_features=8,
        n_positive=500,
        classes="+1 = tested negative, -1 = tested positive (LIBSVM's signs)",
        scaled_files=("diabetes_scale",),
        raw_files=("diabetes",),
        licence="none stated (once in the UCI Machine Learning Repository, later withdrawn)",
        feature_names=("preg", "plas", "pres", "skin", "insu", "mass", "pedi", "age"),
    ),
    DatasetInfo(
        name="liver",
        title="Liver Disorders (BUPA), all 345 rows",
        n_rows=345,
        n_features=6,
        n_positive=145,
        classes="+1 = selector 1, -1 = selector 2",
        scaled_files=("liver-disorders_scale",),
        raw_files=("liver-disorders",),
        licence=_uci("C54G67"),
        feature_names=("mcv", "alkphos", "sgpt", "sgot", "gammagt", "drinks"),
    ),
    DatasetInfo(
        name="splice",
        title="Molecular Biology (Splice-junction Gene Sequences), A, G, C, T as 1, 2, 3, 4",
        n_rows=1000,
        n_features=60,
        n_positive=517,
        classes="+1 = no junction, -1 = exon/intron or intron/exon junction",
        scaled_files=("splice_scale",),
        raw_files=("splice",),
        licence=_uci("C5M888"),
        feature_names=tuple(f"pos{position}" for position in range(1, 61)),
    ),
)

REGISTRY = {info.name: info for info in _SETS}
"""Name to facts, in the order of the paper."""


def find_info(name: str) -> DatasetInfo:
    """The facts about a data set.

    Examples
    --------
    >>> find_info("heart").n_rows
    270
    >>> find_info("iris")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: name must be one of sonar, german, australian, ijcnn1, heart, ...; got 'iris'.
    """
    info = REGISTRY.get(name) if isinstance(name, str) else None
    if info is None:
        raise ValueError(f"name must be one of {', '.join(REGISTRY)}; got {name!r}.")
    return info
