"""Weights that speak broken English without training: a bigram table in closed form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tuirig.demo.tokenizer import Tokenizer

Floats = NDArray[np.float32]

_SMOOTHING = 5.0
_CONSTANT = 0.3
_LONGEST_ROW = 0.95


@dataclass(frozen=True)
class Language:
    """A tokenizer and the text whose word order the miniature models imitate."""

    tokenizer: Tokenizer
    tokens: NDArray[np.int64]

    @classmethod
    def read(cls, gguf_file: Path, vocabulary: int) -> Language:
        """The first `vocabulary` ids of a GGUF's tokenizer, and the corpus in them."""
        tokenizer = Tokenizer(gguf_file, vocabulary)
        return cls(tokenizer, np.array(tokenizer.encode(corpus()), np.int64))

    @property
    def vocabulary(self) -> int:
        """Number of tokens."""
        return len(self.tokenizer.tokens)


def corpus(characters: int = 600_000) -> str:
    """English prose that every CPython carries (its help texts), cut to words and `. , ' ( ) -`."""
    from pydoc_data.topics import topics

    prose = []
    for paragraph in re.split(r"\n\s*\n", "\n\n".join(topics[key] for key in sorted(topics))):
        line = " ".join(paragraph.split())
        letters = sum(letter.isalpha() or letter == " " for letter in line)
        if len(line) > 60 and letters / len(line) > 0.88:  # neither code nor grammars nor tables
            prose.append(re.sub(r"[^A-Za-z0-9 .,'()-]+", "", line))
    return re.sub(r" +", " ", "\n".join(prose))[:characters]


def bigram_factors(
    language: Language, dim: int, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Embedding [vocabulary, dim] and head [vocabulary, dim] of the corpus's bigram table.

    head @ RMSNorm(embedding[t]) is close to log P(next | t) up to a constant. The embedding's rows
    have length 1. Column 0 is a constant and carries log P(next); columns 1 to dim - 2 are the
    singular vectors of the pointwise mutual information in falling order, so that the leading
    columns alone are a coarser model; the last column fills each row up to the same length, so that
    RMSNorm is the same factor for every token.
    """
    vocabulary = language.vocabulary
    counts = np.zeros((vocabulary, vocabulary), np.float32)
    np.add.at(counts, (language.tokens[:-1], language.tokens[1:]), 1.0)
    np.fill_diagonal(counts, 0.0)  # else greedy text repeats one token for ever
    after_any = counts.sum(0) + 0.5
    after_any /= after_any.sum()
    seen = counts.sum(1, keepdims=True)
    after_this = (counts + _SMOOTHING * after_any) / (seen + _SMOOTHING)
    information = np.log(after_this / after_any)
    weight = np.sqrt(seen + 1.0)  # frequent tokens are fitted best
    left, singular, right = _singular_vectors(weight * information, dim - 2, random)

    embedding = left * np.sqrt(singular) / weight
    length = np.linalg.norm(embedding, axis=1, keepdims=True)
    embedding *= np.minimum(1.0, _LONGEST_ROW / np.maximum(length, 1e-6))
    filler = np.sqrt(np.maximum(0.0, 1.0 - _CONSTANT**2 - (embedding**2).sum(1, keepdims=True)))
    unigram = np.log(after_any)
    unigram -= unigram.mean()
    embedding = np.concatenate([np.full((vocabulary, 1), _CONSTANT), embedding, filler], axis=1)
    head = np.concatenate(
        [
            (unigram / _CONSTANT)[:, None],
            right * np.sqrt(singular),
            np.zeros((vocabulary, 1)),
        ],
        axis=1,
    ) / np.sqrt(dim)
    return embedding.astype(np.float32), head.astype(np.float32)


def _singular_vectors(
    table: Floats, rank: int, random: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """The leading singular triplets of a square table, by a randomised range finder.

    Halko, Martinsson, Tropp 2011, algorithm 4.4 with three power iterations.
    """
    basis = random.standard_normal((len(table), rank + 34)).astype(np.float32)
    for _ in range(3):
        basis, _ = np.linalg.qr(table @ basis)
        basis, _ = np.linalg.qr(table.T @ basis)
    left, singular, right = np.linalg.svd(table @ basis, full_matrices=False)
    return left[:, :rank], singular[:rank], (basis @ right.T)[:, :rank]
