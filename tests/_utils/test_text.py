"""The name that somebody most likely meant."""

from __future__ import annotations

import pytest

from distreduce._utils.text import did_you_mean

KNOWN = ("boston", "fashion_mnist", "Price", 7)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("bostn", "Did you mean 'boston'? "),
        ("PRICE", "Did you mean 'Price'? "),
        ("fashion-mnist", "Did you mean 'fashion_mnist'? "),
        ("xyz", ""),
        ("", ""),
        (7, "Did you mean '7'? "),
    ],
)
def test_the_closest_name_or_nothing(name, sentence):
    assert did_you_mean(name, KNOWN) == sentence


def test_of_no_names_none_is_close():
    assert did_you_mean("boston", ()) == ""
