"""Pictures hold what they should, and drawing changes nothing else."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
import uncertainty_toolbox as uct
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from distreduce import SDR, DistR
from distreduce.exceptions import InvalidInputError, InvalidTypeError
from distreduce.plotting import plot_calibration, plot_coupling, plot_embedding, plot_history, plot_prototypes
from distreduce.plotting.palette import OKABE_ITO, UNKNOWN, class_palette, class_shapes

X, CODES = load_iris(return_X_y=True)
LABELS = np.array(["setosa", "versicolor", "virginica"])[CODES]
LENGTHS = X[:, 2] + 0.5  # a continuous target that X knows


@pytest.fixture(autouse=True)
def _same_settings():
    """No picture of this module changes a setting of matplotlib, its backend included."""
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before


@pytest.fixture(scope="module")
def classes() -> SDR:
    return SDR(n_prototypes=12, max_iter=5, random_state=0).fit(X, LABELS)


@pytest.fixture(scope="module")
def numbers() -> SDR:
    return SDR(n_prototypes=12, task="regression", random_state=0).fit(X, LENGTHS)


@pytest.fixture(scope="module")
def unsupervised() -> DistR:
    return DistR(n_prototypes=12, random_state=0).fit(X)


def axes():
    return Figure(layout="constrained").subplots()


def discs(ax):
    return ax.collections[-1]


def test_areas_are_in_the_proportion_of_the_weights(classes):
    drawn = discs(plot_embedding(classes, LABELS, axes())).get_sizes()
    used = np.sort(classes.prototype_weights_[classes.prototype_weights_ > 0])[::-1]
    np.testing.assert_allclose(drawn / drawn.sum(), used)


def test_prototypes_lie_where_the_model_put_them(classes):
    drawn = np.asarray(discs(plot_prototypes(classes, axes())).get_offsets())
    order = np.argsort(-classes.prototype_weights_, kind="stable")[: len(drawn)]
    np.testing.assert_allclose(drawn, classes.prototypes_[order])


def test_samples_lie_where_the_model_put_them(classes):
    drawn = plot_embedding(classes, LABELS, axes()).collections[0].get_offsets()
    np.testing.assert_allclose(np.asarray(drawn), classes.embedding_)


def test_samples_have_the_colours_of_their_classes(classes):
    drawn = plot_embedding(classes, LABELS, axes()).collections[0].get_facecolors()[:, :3]
    np.testing.assert_allclose(drawn, to_rgba_array(OKABE_ITO)[CODES][:, :3])


def test_samples_without_a_label_are_grey(classes):
    partly = LABELS.astype(object)
    partly[7] = None
    drawn = plot_embedding(classes, partly, axes()).collections[0].get_facecolors()
    np.testing.assert_allclose(drawn[7, :3], to_rgba(UNKNOWN)[:3])


def test_a_mixed_prototype_has_the_blend_of_its_classes():
    plan = np.r_[np.zeros(50, int), np.ones(100, int)]  # setosa alone, the other two halves of one prototype
    model = SDR(n_prototypes=2, init=plan, max_iter=1, tol=1e3, random_state=0).fit(X, LABELS)
    palette = to_rgba_array(OKABE_ITO)[:3]
    shares = np.array([np.bincount(CODES[model.labels_ == k], minlength=3) for k in (0, 1)], dtype=float)
    expected = shares / shares.sum(axis=1, keepdims=True) @ palette
    drawn = discs(plot_embedding(model, LABELS, axes())).get_facecolors()
    np.testing.assert_allclose(drawn[:, :3], expected[np.argsort(-model.prototype_weights_)][:, :3])


def test_the_legend_names_the_classes(classes):
    legend = plot_embedding(classes, LABELS, axes()).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["setosa", "versicolor", "virginica"]


@pytest.mark.parametrize(("n_classes", "named"), [(24, 24), (25, 0)])
def test_more_classes_than_marks_have_no_legend(unsupervised, n_classes, named):
    legend = plot_embedding(unsupervised, [f"c{k % n_classes}" for k in range(150)], axes()).get_legend()
    assert (len(legend.get_texts()) if legend else 0) == named


def test_up_to_24_classes_no_two_share_colour_and_shape(unsupervised):
    codes = np.arange(150) % 24
    samples = plot_embedding(unsupervised, [f"c{k:02}" for k in codes], axes()).collections[0]
    marks = {
        (tuple(colour), path.vertices.tobytes())
        for colour, path in zip(samples.get_facecolors(), samples.get_paths(), strict=True)
    }
    assert len(marks) == 24


def test_prototypes_have_the_shape_of_their_most_frequent_class(unsupervised):
    codes = np.arange(150) // 15
    drawn = discs(plot_embedding(unsupervised, [f"c{k}" for k in codes], axes())).get_paths()
    order = np.argsort(-unsupervised.prototype_weights_, kind="stable")[: len(drawn)]
    main = (unsupervised.coupling_.T @ np.eye(10)[codes])[order].argmax(axis=1)
    assert [len(path.vertices) == 5 for path in drawn] == [k >= 8 for k in main]  # squares beyond the eighth class


def test_a_sample_without_a_label_is_a_disc(unsupervised):
    y = np.array([f"c{k:02}" for k in np.arange(150) % 20], dtype=object)
    y[19] = None
    paths = plot_embedding(unsupervised, y, axes()).collections[0].get_paths()
    assert len(paths[19].vertices) == len(paths[0].vertices) > 5


# Of Machado, Oliveira and Fernandes (2009), severity 1, on linear light.
SIMULATED = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def lab(rgb):
    """CIE L*a*b* of linear sRGB, white D65."""
    xyz = rgb @ np.array([[0.4124, 0.2126, 0.0193], [0.3576, 0.7152, 0.1192], [0.1805, 0.0722, 0.9505]])
    f = np.cbrt(np.maximum(xyz / [0.9505, 1.0, 1.089], 0.008856))
    return np.c_[116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])]


@pytest.mark.parametrize("vision", SIMULATED)
@pytest.mark.parametrize("shape", [0, 1, 2])
def test_colours_of_one_shape_differ_for_colour_blind_readers(vision, shape):
    own = class_palette(24)[class_shapes(24) == shape, :3]
    linear = np.where(own > 0.04045, ((own + 0.055) / 1.055) ** 2.4, own / 12.92)
    seen = lab(np.clip(linear @ np.array(SIMULATED[vision]).T, 0, 1))
    assert pdist(seen).min() > 8  # a difference of 2 can just be seen


def test_more_classes_than_safe_colours_are_named_on_the_picture(unsupervised):
    ax = plot_embedding(unsupervised, np.repeat(list("abcdefghij"), 15), axes())
    main = {"abcdefghij"[k] for k in range(10)} & {text.get_text() for text in ax.texts}
    assert main == {text.get_text() for text in ax.texts} and len(main) > 1


def test_continuous_targets_have_a_colour_bar_with_the_range_of_y(numbers):
    ax = plot_embedding(numbers, LENGTHS, axes())
    bar = ax.figure.axes[-1]
    np.testing.assert_allclose(bar.get_ylim(), (LENGTHS.min(), LENGTHS.max()))


def test_continuous_colours_follow_the_target(numbers):
    drawn = plot_embedding(numbers, LENGTHS, axes()).collections[0].get_facecolors()[:, :3]
    low, high = (matplotlib.colormaps["viridis"](end)[:3] for end in (0.0, 1.0))
    np.testing.assert_allclose(drawn[[LENGTHS.argmin(), LENGTHS.argmax()]], [low, high])


def test_distr_takes_the_colours_from_y(unsupervised):
    drawn = discs(plot_embedding(unsupervised, LABELS, axes())).get_facecolors()[:, :3]
    order = np.argsort(-unsupervised.prototype_weights_, kind="stable")[: len(drawn)]
    shares = unsupervised.coupling_.T @ np.eye(3)[CODES]
    expected = (shares / shares.sum(axis=1, keepdims=True))[order] @ to_rgba_array(OKABE_ITO)[:3]
    np.testing.assert_allclose(drawn, expected[:, :3])


def test_the_plane_has_equal_aspect(classes):
    assert plot_embedding(classes, LABELS, axes()).get_aspect() == 1.0


def test_one_prototype_a_sample_draws_samples_alone():
    model = SDR(max_iter=1, tol=1e3, random_state=0).fit(X[::3], LABELS[::3])
    assert len(plot_embedding(model, LABELS[::3], axes()).collections) == 1


def test_a_line_is_drawn_against_the_target():
    model = SDR(1, n_prototypes=8, task="regression", random_state=0).fit(X, LENGTHS)
    drawn = np.asarray(plot_embedding(model, LENGTHS, axes()).collections[0].get_offsets())
    np.testing.assert_allclose(drawn, np.c_[model.embedding_, LENGTHS])


def test_a_line_without_y_puts_samples_at_their_prototypes_target():
    model = SDR(1, n_prototypes=8, task="regression", random_state=0).fit(X, LENGTHS)
    drawn = np.asarray(plot_embedding(model, ax=axes()).collections[0].get_offsets())
    np.testing.assert_allclose(drawn[:, 1], model.prototype_targets_[model.labels_, 0])


@pytest.fixture(scope="module")
def solid() -> SDR:
    return SDR(3, n_prototypes=8, max_iter=3, tol=1e-2, random_state=0).fit(X, LABELS)


def test_three_dimensions_show_the_widest_plane(solid):
    drawn = np.asarray(plot_embedding(solid, LABELS, axes()).collections[0].get_offsets())
    spread = np.linalg.eigvalsh(np.cov(solid.embedding_.T))[::-1]
    np.testing.assert_allclose(drawn.var(axis=0, ddof=1), spread[:2])


def test_two_of_three_dimensions_can_be_chosen(solid):
    drawn = np.asarray(plot_embedding(solid, LABELS, axes(), components=(2, 0)).collections[0].get_offsets())
    np.testing.assert_allclose(drawn, solid.embedding_[:, [2, 0]])


def test_prototypes_are_numbered_as_in_the_summary(classes):
    ax = plot_prototypes(classes, axes())
    assert {int(text.get_text()) for text in ax.texts} == set(np.flatnonzero(classes.prototype_weights_ > 0))


def test_history_draws_the_change_of_the_objective(classes):
    line = plot_history(classes, axes()).get_lines()[0]
    values = classes.history_["objective"].to_numpy()
    np.testing.assert_allclose(line.get_ydata(), values - values[0])


def test_history_draws_the_cka_on_axes_of_its_own(classes):
    right = plot_history(classes, axes()).figure.axes[-1]
    np.testing.assert_allclose(right.get_lines()[0].get_ydata(), classes.history_["cka"])


def test_history_of_distr_has_no_cka(unsupervised):
    assert len(plot_history(unsupervised, axes()).figure.axes) == 1


def test_coupling_shows_the_shares_of_the_classes(classes):
    drawn = np.asarray(plot_coupling(classes, LABELS, axes()).images[0].get_array())
    shares = classes.prototype_targets_[classes.prototype_weights_ > 0].T
    np.testing.assert_allclose(np.sort(drawn, axis=None), np.sort(shares, axis=None), atol=1e-12)


def test_coupling_orders_prototypes_by_class(classes):
    drawn = np.asarray(plot_coupling(classes, LABELS, axes()).images[0].get_array())
    assert (np.diff(drawn.argmax(axis=0)) >= 0).all()


def test_coupling_counts_each_sample_in_its_bin(numbers):
    ax = plot_coupling(numbers, LENGTHS, axes(), n_bins=4)
    drawn, names = np.asarray(ax.images[0].get_array()), [int(tick.get_text()) for tick in ax.get_xticklabels()]
    binned = np.minimum((4 * (LENGTHS - LENGTHS.min()) / np.ptp(LENGTHS)).astype(int), 3)
    of_first = np.bincount(binned, weights=numbers.coupling_.toarray()[:, names[0]], minlength=4)
    np.testing.assert_allclose(drawn[:, 0], of_first / of_first.sum(), atol=1e-12)


def test_coupling_leaves_unknown_targets_out(numbers):
    partly = np.where(LENGTHS < np.median(LENGTHS), LENGTHS, np.nan)
    image = plot_coupling(numbers, partly, axes(), n_bins=1).images[0]
    carriers = np.unique(numbers.coupling_[np.flatnonzero(~np.isnan(partly))].indices)
    assert image.get_array().shape == (1, len(carriers)) and len(carriers) < 12


def columns_of(ax):
    """Numbers of the prototypes in the order of the columns, if there are few enough for all to be written."""
    return [int(tick.get_text()) for tick in ax.get_xticklabels()]


def test_coupling_orders_prototypes_of_a_class_by_weight(classes):
    drawn = columns_of(plot_coupling(classes, LABELS, axes()))
    main = classes.prototype_targets_.argmax(axis=1)
    assert drawn == sorted(drawn, key=lambda k: (main[k], -classes.prototype_weights_[k]))


def test_coupling_draws_each_used_prototype_under_its_number(classes):
    ax = plot_coupling(classes, LABELS, axes())
    expected = classes.prototype_targets_[columns_of(ax)].T
    np.testing.assert_allclose(np.asarray(ax.images[0].get_array()), expected, atol=1e-12)


def test_coupling_without_y_shows_the_shares_that_the_model_keeps(classes):
    with_y, without = (np.asarray(plot_coupling(classes, y, axes()).images[0].get_array()) for y in (LABELS, None))
    np.testing.assert_allclose(without, with_y, atol=1e-12)


def test_coupling_without_y_shows_each_prototypes_mean_in_its_bin(numbers):
    ax = plot_coupling(numbers, ax=axes(), n_bins=4)
    means = numbers.prototype_targets_[:, 0]
    binned = np.digitize(means, np.linspace(means.min(), means.max(), 5)[1:-1])
    np.testing.assert_array_equal(np.asarray(ax.images[0].get_array()), np.eye(4)[binned[columns_of(ax)]].T)


def test_coupling_without_y_leaves_unused_prototypes_out():
    plan = np.where(CODES == 0, 0, 2)  # prototype 1 carries nothing
    model = SDR(n_prototypes=3, init=plan, max_iter=0, tol=1e3, random_state=0).fit(X, LABELS)
    assert columns_of(plot_coupling(model, ax=axes())) == [0, 2]


def test_coupling_of_distr_needs_y(unsupervised):
    with pytest.raises(InvalidInputError, match="DistR has no targets of its own"):
        plot_coupling(unsupervised, ax=axes())


def test_coupling_counts_weights(numbers):
    weights = np.where(LENGTHS < 3.0, 3.0, 1.0)
    ax = plot_coupling(numbers, LENGTHS, axes(), sample_weight=weights, n_bins=2)
    mass = weights[:, None] * numbers.coupling_.toarray()[:, columns_of(ax)]
    low = LENGTHS < (LENGTHS.min() + LENGTHS.max()) / 2
    np.testing.assert_allclose(ax.images[0].get_array()[0], mass[low].sum(axis=0) / mass.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 40, 75])
def test_names_beside_the_heat_map_do_not_touch(unsupervised, n_classes):
    y = np.array([f"{k} is a long name for a class of flowers" for k in range(n_classes)])[np.arange(150) % n_classes]
    ax = plot_coupling(unsupervised, y, axes())
    ax.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert all(low.y1 <= high.y0 for low, high in zip(boxes[:-1], boxes[1:], strict=True))


def test_forty_classes_are_all_named(unsupervised):
    ax = plot_coupling(unsupervised, np.arange(150) % 40, axes())
    assert [label.get_text() for label in ax.get_yticklabels()] == [str(k) for k in range(40)]


def test_a_hundred_prototypes_have_at_most_twenty_numbers():
    model = DistR(n_prototypes=100, max_iter=1, tol=1e3, random_state=0).fit(X)
    assert len(columns_of(plot_coupling(model, LABELS, axes()))) <= 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_weight": [1.0]}, "must hold 150 numbers"),
        ({"n_bins": 0}, "at least 1"),
        ({"target": 1}, "not a column"),
    ],
)
def test_coupling_refuses_what_does_not_fit(numbers, options, message):
    with pytest.raises(InvalidInputError, match=message):
        plot_coupling(numbers, LENGTHS, axes(), **options)


@pytest.fixture
def predictions(rng) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """An over-confident and an under-confident model of one target."""
    mean, std = rng.standard_normal(80), 0.2 + rng.random(80)
    y = mean + std * rng.standard_normal(80)
    return {"bold": (y, mean, 0.5 * std), "shy": (y, mean, 2 * std)}


def test_calibration_draws_the_curve_of_uncertainty_toolbox(predictions):
    drawn = plot_calibration(predictions, axes()).get_lines()[2].get_xydata()
    y, mean, std = predictions["shy"]
    np.testing.assert_allclose(drawn.T, uct.get_proportion_lists_vectorized(mean, std, y, num_bins=99), atol=1e-12)


def test_calibration_has_the_ideal_diagonal(predictions):
    drawn = plot_calibration(predictions, axes()).get_lines()[0].get_xydata()
    np.testing.assert_array_equal(drawn, [[0, 0], [1, 1]])


def test_calibration_names_each_model_with_its_error(predictions):
    errors = [uct.mean_absolute_calibration_error(mean, std, y, num_bins=99) for y, mean, std in predictions.values()]
    texts = [text.get_text() for text in plot_calibration(predictions, axes()).get_legend().get_texts()]
    assert texts == ["ideal", f"bold (MACE {errors[0]:.3f})", f"shy (MACE {errors[1]:.3f})"]


def test_calibration_shades_the_area_between_curve_and_diagonal(predictions):
    ax = plot_calibration(predictions, axes())
    x, height = ax.collections[0].get_paths()[0].vertices.T
    area = 0.5 * abs(np.dot(x, np.roll(height, 1)) - np.dot(height, np.roll(x, 1)))  # shoelace; bold never crosses
    y, mean, std = predictions["bold"]
    assert area == pytest.approx(uct.miscalibration_area(mean, std, y, num_bins=99), abs=1e-3)


def test_calibration_of_more_models_than_safe_colours_repeats_none(predictions):
    many = {f"model {k}": predictions["bold"] for k in range(12)}
    colours = [line.get_color() for line in plot_calibration(many, axes()).get_lines()]
    assert len(set(colours)) == 13


@pytest.mark.parametrize("wrong", [{}, (LENGTHS, LENGTHS, LENGTHS)])
def test_calibration_without_named_models_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="must map the name"):
        plot_calibration(wrong, axes())


def test_importing_the_package_and_its_plots_does_not_import_matplotlib():
    code = "import sys, distreduce, distreduce.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0


def test_without_axes_a_new_figure_is_made(classes, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "subplots", lambda **options: (None, axes()))  # no window, whatever the backend
    assert len(plot_embedding(classes, LABELS).collections) == 2


@pytest.mark.parametrize("n_classes", [2, 8, 9, 24, 25, 60])
def test_every_class_has_its_own_colour(n_classes):
    assert len(np.unique(class_palette(n_classes).round(6), axis=0)) == n_classes


@pytest.mark.parametrize("n_classes", [8, 24, 60])
def test_no_class_has_the_grey_of_the_unknown(n_classes):
    strength = np.ptp(class_palette(n_classes)[:, :3], axis=1)
    assert ((strength > 0.1) | (class_palette(n_classes)[:, 0] == 0)).all()  # black is no grey


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (LABELS[:10], "one row for each of the 150 samples"),
        (np.where(CODES == 0, "rose", LABELS), "'rose', which the fit did not have"),
    ],
)
def test_wrong_targets_are_refused(classes, y, message):
    with pytest.raises(InvalidInputError, match=message):
        plot_embedding(classes, y, axes())


def test_text_for_a_continuous_target_is_refused(numbers):
    with pytest.raises(InvalidInputError, match="cannot be read as numbers"):
        plot_embedding(numbers, LABELS, axes())


def test_a_missing_column_of_the_target_is_refused(numbers):
    with pytest.raises(InvalidInputError, match="target=1 is not a column"):
        plot_embedding(numbers, LENGTHS, axes(), target=1)


def test_dimensions_that_do_not_exist_are_refused(classes):
    with pytest.raises(InvalidInputError, match=r"components=\(0, 2\)"):
        plot_embedding(classes, LABELS, axes(), components=(0, 2))


def test_another_model_is_refused():
    with pytest.raises(InvalidTypeError, match="LinearRegression"):
        plot_history(LinearRegression())


def test_a_model_that_was_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        plot_prototypes(SDR())


@pytest.mark.parametrize("y", [["same"] * 150, [7.5] * 150, ["setosa", None, None] * 50])
def test_a_target_that_teaches_nothing_can_be_shown(unsupervised, y):
    assert len(plot_embedding(unsupervised, y, axes()).collections) == 2


def test_names_are_not_read_as_mathematics(unsupervised):
    ax = plot_embedding(unsupervised, [["$5-$10", r"$\frac{$"][k % 2] for k in range(150)], axes())
    ax.figure.canvas.draw()
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())
