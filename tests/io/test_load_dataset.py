"""The sets that come with the package."""

import numpy as np
import pytest

from exclusivity.io import load_dataset
from exclusivity.io.datasets import BUNDLED


class TestBundled:
    @pytest.mark.parametrize("name", BUNDLED)
    def test_scaled(self, name):
        info, found = BUNDLED[name], load_dataset(name)
        assert found.data.shape == (info["rows"], info["columns"])
        assert found.data.dtype == found.target.dtype == np.float64
        assert set(found.target) == (set(range(1, 8)) if name == "lung" else {-1.0, 1.0})
        low, high = found.data.min(axis=0), found.data.max(axis=0)
        constant = low == high
        assert constant.sum() == (name == "ionosphere")
        np.testing.assert_array_equal(low, np.where(constant, 0, -1))
        np.testing.assert_array_equal(high, np.where(constant, 0, 1))

    @pytest.mark.parametrize("name", BUNDLED)
    def test_original_values(self, name):
        raw, scaled = load_dataset(name, scaled=False), load_dataset(name, scaled=True)
        np.testing.assert_array_equal(raw.target, scaled.target)
        low, high = raw.data.min(axis=0), raw.data.max(axis=0)
        keep = high > low
        np.testing.assert_allclose(
            ((scaled.data + 1) / 2 * (high - low) + low)[:, keep], raw.data[:, keep], atol=1e-12 * high.max()
        )
        assert "original values" in raw.DESCR
        assert "scaled to [-1, 1]" in scaled.DESCR

    def test_known_rows(self):
        """The first rows of what everybody knows."""
        np.testing.assert_array_equal(
            load_dataset("diabetes", scaled=False).data[0], [6, 148, 72, 35, 0, 33.6, 0.627, 50]
        )
        assert load_dataset("diabetes").target[0] == -1  # tested positive
        german = load_dataset("german", scaled=False)
        np.testing.assert_array_equal(german.data[0, :5], [1, 6, 4, 12, 5])
        assert german.target[0] == -1  # good credit
        assert set(np.unique(load_dataset("splice", scaled=False).data)) == {1, 2, 3, 4}

    @pytest.mark.parametrize("name", BUNDLED)
    def test_facts(self, name):
        found = load_dataset(name)
        assert found.name == name
        assert found.source.startswith("bundled with exclusivity (from ")
        assert f"this copy: {BUNDLED[name]['licence']}" in found.licence
        assert BUNDLED[name]["licence_of_the_data"] in found.licence
        assert found.DESCR.startswith(f"{name}: {BUNDLED[name]['title']}\n{len(found.data)} rows")
        if found.feature_names is not None:
            assert len(found.feature_names) == found.data.shape[1]

    def test_nobody_shares_arrays(self):
        first = load_dataset("heart")
        first.data[:] = 0
        first.feature_names.clear()
        assert load_dataset("heart").data.any()
        assert load_dataset("heart").feature_names[0] == "age"

    @pytest.mark.parametrize("name", ["iris", "", "Heart", None, 3, "ijcnn1"])
    def test_unknown_name(self, name):
        with pytest.raises(ValueError, match=r"name must be one of sonar, german, .*spambase, lung; got"):
            load_dataset(name)
