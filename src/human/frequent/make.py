"""Writes the lists of frequent words beside this file: python make.py, with wordfreq 3.1.1 installed.

One word a line, the most frequent first, as `wordfreq.top_n_list(language, 2000)` gives them.
"""

import pathlib

import wordfreq

LANGUAGES = ["en", "es", "pt", "ja", "tr", "hi", "ar", "ru", "zh", "fr", "vi", "de", "ko"]
COUNT = 2000

for language in LANGUAGES:
    words = wordfreq.top_n_list(language, COUNT)
    path = pathlib.Path(__file__).with_name(f"{language}.txt")
    path.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
