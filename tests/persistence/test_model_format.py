"""Files that are not what they should be: each gets an error that says what is wrong and what to do."""

import os
import threading

import numpy as np
import pandas as pd
import pytest

from exclusivity import ERMClassifier, __version__
from exclusivity.io import ModelFormatError, load_model, save_model
from exclusivity.io.models import MAX_HEADER, PREFIX
from persistence.model_cases import MODELS, X2, Y2, joined, split


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a pipeline with names, texts and everything."""
    folder = tmp_path_factory.mktemp("sound")
    frame = pd.DataFrame(X2, columns=list("abcd"))
    save_model(ERMClassifier(3).fit(frame, np.array(["no", "yes"])[Y2]), folder / "named.erm")
    save_model(MODELS["long pipeline"](), folder / "pipeline.erm")
    save_model(MODELS["pipeline"](), folder / "standard.erm")
    return {path.stem: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def refused(tmp_path):
    """Check that a file is refused with the words expected, and with its name."""

    def check(data, words):
        path = tmp_path / "some.erm"
        path.write_bytes(data)
        with pytest.raises(ModelFormatError, match=words) as caught:
            load_model(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert len(caught.value.cause) < 700
        assert isinstance(caught.value, ValueError)

    return check


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b"\x80\x04\x95 pickle", r"no model file: it starts with b'\\x80\\x04\\x95.* looks like a pickle"),
        (b"PK\x03\x04" + bytes(100), "this is no model file"),
        (b"\x89ER", "the file ends after 3 bytes"),
        (b"\x89ERM\n\x1a\n" + bytes(60), "this is no model file"),
    ],
)
def test_other_files(refused, data, words):
    refused(data, words)


def test_every_truncation_and_every_appended_byte(refused, sound):
    data = sound["named"]
    for end in [*range(1, 60), len(data) // 2, len(data) - 1]:
        refused(data[:end], "ends after|cut short")
    refused(data + b"\0", "something was appended")


def test_every_flipped_byte_is_noticed(sound, tmp_path):
    data = bytearray(sound["named"])
    path = tmp_path / "some.erm"
    for place in range(0, len(data), 7):
        data[place] ^= 0x10
        path.write_bytes(data)
        with pytest.raises(ModelFormatError):
            load_model(path)
        data[place] ^= 0x10
    path.write_bytes(data)
    assert load_model(path).n_estimators == 3


def test_versions(refused, sound):
    data = bytearray(sound["named"])
    data[8] = 2
    refused(bytes(data), r"version 2 of the format; .* reads version 1\. .*upgrade exclusivity")


def test_lengths_are_checked_before_memory_is_taken(refused, sound):
    magic, version, header_length, size = PREFIX.unpack_from(sound["named"])
    rest = sound["named"][PREFIX.size :]
    refused(PREFIX.pack(magic, version, MAX_HEADER + 1, size) + rest, "the header claims")
    refused(PREFIX.pack(magic, version, size, size) + rest, "the header claims")
    refused(PREFIX.pack(magic, version, header_length, 2**63) + rest, "it was cut short")
    header, arrays = split(sound["named"])
    for shape in ([2**62, 2**62, 2], [10**30], [10**9], [len(arrays)]):
        header["arrays"][0]["shape"] = shape
        refused(joined(header, arrays), "whole number from 0 to|need a file of")


def test_checksum(refused, sound):
    data = bytearray(sound["named"])
    data[-1] ^= 1
    refused(bytes(data), "the checksum does not match the content. The file is damaged")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"C":2.0', b'"C":NaN', "no valid JSON .*Out of range float"),
        (b'"C":2.0', b'"C":-Infinity', "no valid JSON"),
        (b'"C":2.0', b'"C":1e999', "no valid JSON"),
        (b'"C":2.0', b'"C":2.0,"C":3.0', "the header is not written as save_model writes it"),
        (b'"C":2.0', b'"C":2.0,"D":3.0', "has the unknown key 'D'. It may come from a newer version"),
        (b'"C":2.0', b'"C":' + b"9" * 40, "params.C is 9{40}, which is too large"),
        (b'"C":2.0', b'"C":' + b"9" * 5000, "no valid JSON"),
        (b'"C":2.0', b'"C":' + b"[" * 50_000 + b"]" * 50_000, "nested too deeply"),
        (b'"C":2.0', b'"C":' + b"[" * 20 + b"]" * 20, "ERMClassifier.params.C is nested too deeply"),
        (b'"C":2.0', b'"C":"\xc3\xa9"', "no valid JSON"),
        (b'"C":2.0', b'"C":-1', "a parameter is not allowed: C must be a number above 0"),
        (b'"C":2.0', b'"C":{"float":"nan"}', "expected 'inf' or '-inf'"),
        (b'"C":2.0', b'"C":{"eval":"1"}', "which stands for no parameter"),
        (b'"C":2.0', b'"C":{"dict":[[[],1]]}', "as neither a number nor a text"),
        (b'"C":2.0', b'"C":{"dict":[[1,1],[1,2]]}', "the key 1 twice"),
        (b'"C":2.0', b'"C":{"dict":[[1]]}', "expected a key and a value"),
        (b'"C":2.0', b'"C":{"array":3}', "C must be a number|refers to array"),
        (b'"class_weight":null', b'"class_weight":{"dict":[["\\ud800",1]]}', "lone surrogates are no text"),
        (
            b'"class_weight":null',
            b'"class_weight":{"dict":[[1,18446744073709551616]]}',
            "is 18446744073709551616,",
        ),
        (b'"kind":"ERMClassifier"', b'"kind":"os.system"', "'os.system' as a model, which is unknown"),
        (
            b'"kind":"ERMClassifier"',
            b'"kind":"StandardScaler"',
            "'StandardScaler' as a model, which is unknown",
        ),
        (b'"kind":"ERMClassifier"', b'"kind":["a"]', "as a model, which is unknown"),
        (b'"kind":"ERMClassifier"', b'"kind":"Pipeline"', "has no 'steps'"),
        (b'"n_members":3', b'"n_members":2000000000', "whole number from 1 to 1000000"),
        (b'"n_members":3', b'"n_members":true', "whole number from 1 to 1000000"),
        (
            b'"n_features":4',
            b'"n_features":5',
            r"weights: expected an array of shape \(1, 1, 5\)",
        ),
        (b'"multi_class":"ovr","n_features"', b'"multi_class":"all","n_features"', "expected 'ovr' or 'ovo'"),
        (
            b'"exclusivity":1.0,"feature_names"',
            b'"exclusivity":-1.0,"feature_names"',
            "not a number >= 0",
        ),
        (b'"classes":{"array":0}', b'"classes":{"array":99}', "refers to array 99, which is not there"),
        (b'"classes":{"array":0}', b'"classes":{"array":1}', "refers to array 1, which is not there"),
        (b'"classes":{"array":0}', b'"classes":0', "fitted.classes: expected an array of .*, found 0"),
        (b'"classes":{"array":0},', b"", "fitted has no 'classes'"),
        (b'"type":"U"', b'"type":"O"', "an array of the header has the unknown key 'width'"),
        (b'"type":"U"', b'"type":"text"', "header.width: expected a whole number from 20"),
        (f'"written_by":"{__version__}"'.encode(), b'"written_by":1', "written_by: expected a str, found 1"),
    ],
)
def test_headers(refused, sound, old, new, words):
    data = sound["named"]
    text = data[PREFIX.size : PREFIX.size + PREFIX.unpack_from(data)[2]]
    assert text.count(old) == 1
    refused(joined(text.replace(old, new), split(data)[1]), words)


def test_header_of_another_type(refused, sound):
    refused(joined([1], b""), r"the header: expected an object, found \[1\]")
    header, arrays = split(sound["named"])
    refused(joined({**header, "arrays": 5}, arrays), "expected a list")
    refused(
        joined({**header, "arrays": [*header["arrays"], {"type": "f8", "shape": [0]}]}, arrays),
        "belong to nothing",
    )


def position(header, number):
    """Where the bytes of an array begin."""
    sizes = {"bool": 1, "f8": 8, "i8": 8, "U": 4, "text": 4}
    return sum(
        int(np.prod(spec["shape"])) * sizes[spec["type"]] * spec.get("width", 1)
        for spec in header["arrays"][:number]
    )


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("weights", np.float64("nan").tobytes(), "weights: expected finite numbers, found nan"),
        ("intercepts", np.float64("inf").tobytes(), "intercepts: expected finite numbers"),
        ("converged", b"\x02", "a truth value is neither 0 nor 1"),
        ("classes", "zzz".encode("utf-32-le"), "the classes are not in increasing order"),
        ("classes", b"\xff\xff\xff\xff", "what is no character"),
        ("classes", b"\x00\xd8\x00\x00", "what is no character"),
        ("feature_names", b"\x00\x00\x11\x00", "what is no character"),
    ],
)
def test_arrays(refused, sound, field, value, words):
    header, arrays = split(sound["named"])
    at = position(header, header["model"]["fitted"][field]["array"])
    refused(joined(header, arrays[:at] + value + arrays[at + len(value) :]), words)


def change_names(steps):
    steps[0][0] = steps[1][0]


def change_name(steps):
    steps[0][0] = "a__b"


def change_order(steps):
    steps.reverse()


def change_kind(steps):
    steps[0][1]["kind"] = "FunctionTransformer"


def change_step(steps):
    steps[0] = "passthrough"


def add_to_passthrough(steps):
    steps[1][1]["run"] = "me"


def change_width(steps):
    steps[0][1]["n_features"] = 3


def change_flag(steps):
    steps[0][1]["params"]["clip"] = 1


def change_range(steps):
    steps[0][1]["params"]["feature_range"] = {"tuple": [0, {"float": "inf"}]}


def drop_column(steps):
    steps[0][1]["columns"]["scale_"] = None


def count_rows(steps):
    steps[2][1]["rows"] = 3


def change_output(steps):
    steps[0][1]["output"] = "sql"


def drop_steps(steps):
    steps.clear()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_names, "not allowed as names of steps"),
        (change_name, "not allowed as names of steps"),
        (change_order, "as a step before the classifier, which is unknown|has no"),
        (change_kind, "'FunctionTransformer' as a step before the classifier, which is unknown"),
        (change_step, "pairs of a name and a step"),
        (add_to_passthrough, "'passthrough' as a step before the classifier, which is unknown"),
        (change_width, r"MinMaxScaler.columns.min_: expected an array of shape \(3\), found \(4,\)"),
        (change_flag, "clip: expected True or False"),
        (change_range, "feature_range: expected a pair of numbers"),
        (drop_column, "columns.scale_: expected an array of .*, found None"),
        (count_rows, "RobustScaler.rows: expected None, found 3"),
        (change_output, "'default' or 'pandas' or 'polars', found 'sql'"),
        (drop_steps, "pairs of a name and a step"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_pipelines(refused, sound, change, words):
    header, arrays = split(sound["pipeline"])
    change(header["model"]["steps"])
    refused(joined(header, arrays), words)


def test_scale_of_zero(refused, sound):
    header, arrays = split(sound["standard"])
    columns = header["model"]["steps"][0][1]["columns"]
    at = position(header, columns["scale_"]["array"])
    refused(joined(header, arrays[:at] + bytes(8) + arrays[at + 8 :]), "scale_: expected positive")
    columns["mean_"], columns["var_"] = columns["var_"], {"array": -1}
    refused(joined(header, arrays), "refers to array -1")


def test_older_files_lack_newer_parameters(tmp_path, sound):
    header, arrays = split(sound["named"])
    del header["model"]["params"]["verbose"]
    (tmp_path / "old.erm").write_bytes(joined(header, arrays))
    assert load_model(tmp_path / "old.erm").get_params() == ERMClassifier(3).get_params()


def test_not_a_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "absent.erm")
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a model file"):
        load_model(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFormatError, match="no ordinary file"):
        load_model(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("field", "values", "words"),
    [
        ("groups", [1, 0, 2, 0], "in the order of appearance"),
        ("groups", [0, 2, 1, 0], "in the order of appearance"),
        ("groups", [0, 1, -1, 0], "groups: expected numbers from 0"),
        ("groups", [2**63 - 1, 0, 1, 0], "groups: expected numbers from 0 to 9007199254740992"),
        ("groups", [0, 1, 1, 0], "not the owner of each group"),
        ("partition", [0, 1, 2], "a group belongs to no member"),
        ("partition", [0, -2, 1], "partition: expected numbers from -1"),
    ],
)
def test_groups(refused, tmp_path, field, values, words):
    save_model(MODELS["groups"](), tmp_path / "model.erm")
    header, arrays = split((tmp_path / "model.erm").read_bytes())
    at = position(header, header["model"]["fitted"][field]["array"])
    value = np.array(values, dtype="<i8").tobytes()
    refused(joined(header, arrays[:at] + value + arrays[at + len(value) :]), words)


def test_groups_are_needed_in_short_files(refused, tmp_path):
    """Without them a file of float32 weights would be less than half of the model in memory."""
    save_model(ERMClassifier(2).fit(X2.astype(np.float32), Y2), tmp_path / "model.erm")
    header, arrays = split((tmp_path / "model.erm").read_bytes())
    assert header["model"]["fitted"]["groups"] is not None
    header["model"]["fitted"]["groups"] = None
    refused(joined(header, arrays), "a file of so few bytes needs groups")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("Cs", np.float64(0).tobytes(), "Cs: expected positive, finite numbers"),
        ("scores", np.full(9, np.nan).tobytes(), "a parameter is not allowed: Every score is NaN"),
    ],
)
def test_searches(refused, tmp_path, field, value, words):
    save_model(MODELS["search"](), tmp_path / "model.erm")
    header, arrays = split((tmp_path / "model.erm").read_bytes())
    at = position(header, header["model"]["search"][field]["array"])
    refused(joined(header, arrays[:at] + value + arrays[at + len(value) :]), words)
    header["model"]["params"]["scoring"] = "os.system"
    refused(joined(header, arrays), "a parameter is not allowed: The 'scoring' parameter")
    header["model"]["search"] = {**header["model"]["search"], "scores": header["model"]["search"]["Cs"]}
    refused(joined(header, arrays), "which is not there")


def test_file_that_shrinks_while_it_is_read(tmp_path, sound, monkeypatch):
    path = tmp_path / "some.erm"
    path.write_bytes(sound["named"])
    real = os.fstat

    def shrinking(descriptor):
        status = real(descriptor)
        os.truncate(path, 300)
        return status

    monkeypatch.setattr(os, "fstat", shrinking)
    with pytest.raises(ModelFormatError, match="ended while it was being read"):
        load_model(path)


def test_threads_load_side_by_side(tmp_path, sound):
    path = tmp_path / "some.erm"
    path.write_bytes(sound["named"])
    found = []
    threads = [threading.Thread(target=lambda: found.append(load_model(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8


@pytest.mark.parametrize("change", [("fitted", "certificate_scope"), ("target",)])
def test_a_key_that_may_be_absent_is_not_null(refused, sound, change):
    """Saved again the model would lack the key: one model has one file."""
    header, arrays = split(sound["named"])
    node = header["model"]
    for key in change[:-1]:
        node = node[key]
    node[change[-1]] = None
    refused(joined(header, arrays), change[-1])


def test_texts_have_no_spare_room(refused, sound):
    """Slots wider than the longest text give the same model, and would be saved as another file."""
    header, arrays = split(sound["named"])
    number = header["model"]["fitted"]["feature_names"]["array"]
    spec, at = header["arrays"][number], position(header, number)
    assert spec == {"type": "text", "shape": [4], "width": 20}
    slots = np.frombuffer(arrays[at : at + 4 * 80], dtype="<U20").astype("<U27").tobytes()
    spec["width"] = 27
    refused(joined(header, arrays[:at] + slots + arrays[at + 4 * 80 :]), "27 characters")
