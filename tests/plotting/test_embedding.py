"""Plots of the embedding hold what they should, and drawing changes nothing else."""

from __future__ import annotations

import copy

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.figure import Figure
from plotting.iris_plots import CODES, LABELS, LENGTHS, X, axes, discs
from sklearn.exceptions import NotFittedError

from distreduce import SDR
from distreduce.exceptions import InvalidInputError
from distreduce.plotting import plot_embedding, plot_prototypes
from distreduce.plotting.palette import OKABE_ITO, UNKNOWN
from distreduce.plotting.targets import sample_shares


def test_areas_are_in_the_proportion_of_the_weights(classes):
    drawn = discs(plot_embedding(classes, LABELS, axes())).get_sizes()
    used = np.sort(classes.prototype_weights_[classes.prototype_weights_ > 0])[::-1]
    np.testing.assert_allclose(drawn / drawn.sum(), used)


def test_prototypes_lie_where_the_model_put_them(classes):
    drawn = np.asarray(discs(plot_prototypes(classes, axes())).get_offsets())
    order = np.argsort(-classes.prototype_weights_, kind="stable")[: len(drawn)]
    np.testing.assert_allclose(drawn, classes.prototypes_[order])


@pytest.mark.parametrize(
    ("options", "attribute"),
    [({}, "embedding_left_out_"), ({"places": "fitted"}, "embedding_")],
    ids=["left", "fitted"],
)
def test_samples_lie_at_their_left_out_places_unless_the_fitted_ones_are_asked_for(classes, options, attribute):
    ax = plot_embedding(classes, LABELS, axes(), **options)
    np.testing.assert_allclose(np.asarray(ax.collections[0].get_offsets()), getattr(classes, attribute))
    assert ax.get_xlabel() == f"sdr0 ({'fitted' if options else 'left-out'} places)"


def test_a_model_without_left_out_places_is_drawn_as_fitted(unsupervised):
    ax = plot_embedding(unsupervised, LABELS, axes())
    np.testing.assert_allclose(np.asarray(ax.collections[0].get_offsets()), unsupervised.embedding_)
    assert ax.get_xlabel() == "distr0"


def test_prototypes_have_the_colours_of_the_evidence_unless_the_fitted_ones_are_asked_for(classes):
    doubtful = copy.deepcopy(classes)
    order = np.argsort(-classes.prototype_weights_, kind="stable")[: np.count_nonzero(classes.prototype_weights_)]
    doubtful.prototype_evidence_.loc[order[0], classes.target_names_] = [0.0, 0.5, 0.5]
    doubtful.prototype_evidence_.loc[order[0], "dubious"] = True
    shown, believed = (discs(plot_embedding(doubtful, LABELS, axes(), places=name)) for name in ("left_out", "fitted"))
    shares = np.array([[0.0, 0.5, 0.5]]), classes.prototype_targets_[order]
    evidence, belief = (to_rgba_array(OKABE_ITO)[each.argmax(axis=1)] for each in shares)
    np.testing.assert_allclose(shown.get_facecolors()[0, :3], evidence[0, :3])
    np.testing.assert_allclose(believed.get_facecolors()[:, :3], belief[:, :3], atol=1e-9)
    dashes = [pattern is not None for _, pattern in shown.get_linestyle()]
    assert dashes[0] and sum(dashes) == doubtful.prototype_evidence_["dubious"][order].sum()
    assert not any(pattern is not None for _, pattern in believed.get_linestyle())


def test_samples_have_the_colours_of_their_classes(classes):
    drawn = plot_embedding(classes, LABELS, axes()).collections[0].get_facecolors()[:, :3]
    np.testing.assert_allclose(drawn, to_rgba_array(OKABE_ITO)[CODES][:, :3])


def test_samples_without_a_label_are_grey(classes):
    partly = LABELS.astype(object)
    partly[7] = None
    drawn = plot_embedding(classes, partly, axes()).collections[0].get_facecolors()
    np.testing.assert_allclose(drawn[7, :3], to_rgba(UNKNOWN)[:3])


def test_a_mixed_prototype_has_the_colour_of_its_main_class_and_a_gap():
    plan = np.r_[np.zeros(50, int), np.ones(100, int)]  # setosa alone, the other two halves of one prototype
    model = SDR(n_prototypes=2, init=plan, max_iter=1, tol=1e3, random_state=0).fit(X, LABELS)
    shares = model.prototype_targets_[np.argsort(-model.prototype_weights_, kind="stable")]
    marks = discs(plot_embedding(model, LABELS, axes(), places="fitted"))
    drawn = marks.get_facecolors()[:, :3]
    main = to_rgba_array(OKABE_ITO)[shares.argmax(axis=1), :3]
    np.testing.assert_allclose(drawn, main, atol=1e-9)  # a paler one may look like another class
    mixed, pure = shares.max(axis=1).argmin(), shares.max(axis=1).argmax()
    # Disc, gap and core; the gap turns the other way. The core has the share of the class in what the rim encloses.
    disc, gap, core = (_signed_area(part) for part in marks.get_paths()[mixed].to_polygons())
    assert shares[mixed].max() < 0.7 and -disc < gap < 0
    assert core / -gap == pytest.approx(shares[mixed].max())
    assert len(marks.get_paths()[pure].to_polygons()) == 1


def _signed_area(corners):
    x, y = corners.T
    return (x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def test_marks_leave_samples_in_sight(classes):
    drawn = discs(plot_embedding(classes, LABELS, axes()))
    places = drawn.get_offset_transform().transform(drawn.get_offsets()) * 72 / 100  # points
    gaps = np.sort(np.linalg.norm(places[:, None] - places, axis=2), axis=1)[:, 1]
    assert np.median(np.sqrt(drawn.get_sizes() / np.pi)) < 0.8 * np.median(gaps)


def test_no_number_is_written_over_another(classes):
    crowded = copy.deepcopy(classes)
    crowded.prototypes_[:4] = crowded.prototypes_[0]
    written = [text.get_text().split(":")[0] for text in plot_prototypes(crowded, axes()).texts]
    assert len({"0", "1", "2", "3"} & set(written)) == 1 and len(written) > 4


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
    assert [len(path.to_polygons()[0]) == 5 for path in drawn] == [
        k >= 8 for k in main
    ]  # squares beyond the eighth class


def test_a_sample_without_a_label_is_a_disc(unsupervised):
    y = np.array([f"c{k:02}" for k in np.arange(150) % 20], dtype=object)
    y[19] = None
    paths = plot_embedding(unsupervised, y, axes()).collections[0].get_paths()
    assert len(paths[19].vertices) == len(paths[0].vertices) > 5


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
    shares = (shares / shares.sum(axis=1, keepdims=True))[order]
    expected = to_rgba_array(OKABE_ITO)[shares.argmax(axis=1)]
    np.testing.assert_allclose(drawn, expected[:, :3])


def test_the_plane_has_equal_aspect(classes):
    assert plot_embedding(classes, LABELS, axes()).get_aspect() == 1.0


def test_one_prototype_a_sample_draws_samples_alone():
    model = SDR(max_iter=1, tol=1e3, random_state=0).fit(X[::3], LABELS[::3])
    assert len(plot_embedding(model, LABELS[::3], axes()).collections) == 1


def test_a_line_is_drawn_against_the_target():
    model = SDR(1, n_prototypes=8, task="regression", random_state=0).fit(X, LENGTHS)
    drawn = np.asarray(plot_embedding(model, LENGTHS, axes()).collections[0].get_offsets())
    np.testing.assert_allclose(drawn, np.c_[model.embedding_left_out_, LENGTHS])


def test_a_line_without_y_puts_samples_at_their_prototypes_target():
    model = SDR(1, n_prototypes=8, task="regression", random_state=0).fit(X, LENGTHS)
    drawn = np.asarray(plot_embedding(model, ax=axes(), places="fitted").collections[0].get_offsets())
    np.testing.assert_allclose(drawn[:, 1], model.prototype_targets_[model.labels_, 0])


@pytest.fixture(scope="module")
def solid() -> SDR:
    return SDR(3, n_prototypes=8, max_iter=3, tol=1e-2, random_state=0).fit(X, LABELS)


def test_three_dimensions_show_the_widest_plane(solid):
    drawn = np.asarray(plot_embedding(solid, LABELS, axes()).collections[0].get_offsets())
    spread = np.linalg.eigvalsh(np.cov(solid.embedding_left_out_.T))[::-1]
    np.testing.assert_allclose(drawn.var(axis=0, ddof=1), spread[:2])


def test_two_of_three_dimensions_can_be_chosen(solid):
    drawn = np.asarray(plot_embedding(solid, LABELS, axes(), components=(2, 0)).collections[0].get_offsets())
    np.testing.assert_allclose(drawn, solid.embedding_left_out_[:, [2, 0]])


def test_prototypes_are_numbered_as_in_the_summary(classes):
    ax = plot_prototypes(classes, axes())
    written = dict(text.get_text().split(": ") for text in ax.texts)
    main = classes.prototype_evidence_[classes.target_names_].to_numpy().argmax(axis=1)
    assert written and written == {k: classes.classes_[main[int(k)]] for k in written}
    assert ax.get_title() == "prototypes by their numbers in summary(): most frequent class"


def test_prototypes_of_numbers_are_written_with_their_means(numbers):
    ax = plot_prototypes(numbers, axes(), places="fitted")
    written = {int(k): float(mean) for k, mean in (text.get_text().split(": ") for text in ax.texts)}
    assert written
    np.testing.assert_allclose(list(written.values()), numbers.prototype_targets_[list(written), 0], rtol=5e-3)
    assert ax.get_title() == "prototypes by their numbers in summary(): mean y0"


def test_without_axes_a_new_figure_is_made(classes, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "subplots", lambda **options: (None, axes()))  # no window, whatever the backend
    assert len(plot_embedding(classes, LABELS).collections) == 2


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


def test_unknown_places_are_refused(unsupervised):
    with pytest.raises(InvalidInputError, match="places='best'"):
        plot_embedding(unsupervised, ax=axes(), places="best")


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


def test_names_of_classes_are_not_written_over_each_other(rng):
    X, y = rng.normal(size=(120, 3)), np.array([f"a rather long name {k}" for k in np.arange(120) % 24])
    model = SDR(n_prototypes=40, random_state=0, max_iter=1, tol=1.0).fit(X, y)
    ax = Figure(figsize=(8, 6)).subplots()
    plot_embedding(model, y, ax)
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    overlaps = [a.overlaps(b) for place, a in enumerate(boxes) for b in boxes[place + 1 :]]
    assert len(boxes) > 1 and not any(overlaps)


def test_skewed_numbers_do_not_share_one_colour():
    """Of amounts from 2 to 38,000, nineteen of twenty were dark purple, and one bin of the coupling held them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.exp(3 * X[:, 0])
    model = SDR(n_prototypes=12, task="regression", random_state=0, max_iter=2, tol=1.0).fit(X, y)
    ax = plot_embedding(model, y, Figure().subplots())
    shades = ax.collections[0].get_facecolor()[:, :3]
    quarter = [shades[part].mean(axis=0) for part in np.array_split(np.argsort(y), 4)]
    assert np.linalg.norm(np.diff(quarter, axis=0), axis=1).min() > 0.15
    bar = ax.figure.axes[1]
    ticks = [float(tick.get_text().replace(",", "")) for tick in bar.get_yticklabels()]
    np.testing.assert_allclose(ticks[1:4], np.quantile(y, [0.25, 0.5, 0.75]), rtol=0.01)
    assert "quarters" in bar.get_ylabel()
    rows = sample_shares(model, y, 0, 12)[0]
    assert rows.sum(axis=0).max() <= len(y) / 4 and rows.sum() == len(y)  # with equal bins 112
