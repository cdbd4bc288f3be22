"""Recognises our own words in the text of an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

_WORD = re.compile(r"\w+")
_LONG = 8  # words in a row that nobody repeats by accident
_SHORT = 3


class Sent:
    """The words of what we sent in one conversation."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._grams: dict[int, set[tuple[str, ...]]] = {1: set(), 2: set(), _SHORT: set(), _LONG: set()}
        self._pairs: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
        for text in texts:
            words = _words(text)
            for size, grams in self._grams.items():
                grams.update(_windows(words, size))
            lines = [line for line in map(_words, text.split("\n")) if line]
            self._pairs.update(pairwise(lines))

    def knows(self, text: str, share: float = 0.5) -> bool:
        """Return whether at least that share of the text's words stands in our own order; False for no
        words.
        """
        words = _words(text)
        if not words:
            return False
        return sum(self._covered(words, min(_SHORT, len(words)))) >= share * len(words)

    def repeated(self, lines: Sequence[str]) -> list[bool]:
        """Return for each line whether it is a copy of ours: in a run of 8 words or of 2 whole lines, in
        order.
        """
        split = [_words(line) for line in lines]
        covered = iter(self._covered(tuple(word for line in split for word in line), _LONG))
        marks = [[next(covered) for _ in line] for line in split]
        ours = [bool(line) and all(mark) for line, mark in zip(split, marks, strict=True)]
        filled = [index for index, line in enumerate(split) if line]
        for index, below in pairwise(filled):
            if (split[index], split[below]) in self._pairs:
                ours[index] = ours[below] = True
        return _blanks_joined(ours, split)

    def _covered(self, words: tuple[str, ...], size: int) -> list[bool]:
        covered = [False] * len(words)
        end = 0
        for start, window in enumerate(_windows(words, size)):
            if window in self._grams[size]:
                for index in range(max(start, end), start + size):
                    covered[index] = True
                end = start + size
        return covered


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))


def _windows(words: tuple[str, ...], size: int) -> Iterator[tuple[str, ...]]:
    return (words[start : start + size] for start in range(len(words) - size + 1))


def _blanks_joined(ours: list[bool], split: list[tuple[str, ...]]) -> list[bool]:
    """Return the marks with lines that hold no words going with the line above them."""
    joined = list(ours)
    for index in range(1, len(joined)):
        if not split[index]:
            joined[index] = joined[index - 1]
    return joined
