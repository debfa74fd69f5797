"""Texts that a page must show as they are: scripts, other directions of writing, great length."""

from __future__ import annotations

from itertools import cycle, islice

# Each sets window.hostile where it is taken for anything but text, or draws an element of its own.
_FORMS = (
    "<script>window.hostile=1</script>{n}",
    "<img src=x onerror=window.hostile=1>{n}",
    "<svg onload=window.hostile=1>{n}",
    "{n}\"'><b class=hostile>bold</b>",
    "javascript:window.hostile=1;{n}",
    "${{window.hostile=1}}{{{{constructor.constructor('window.hostile=1')()}}}}{n}",
    "&lt;b class=hostile&gt;{n}&amp;&#60;b&#62;",
    "\u202egnp.{n}\u202c \u05d0\u05d1\u05d2 \u0627\u0644\u0644\u063a\u0629",
    "a\u0301\u200b\u200d\ufeff\U0001f469\u200d\U0001f4bb{n}",
    '<a href="javascript:window.hostile=1">{n}</a>',
    "</style></title></textarea><b class=hostile>{n}",
    "%3Cscript%3E {n} %00 ../../etc",
    "' OR 1=1; DROP TABLE t; -- {n}",
    "__proto__{n}",
)


def hostile_texts(count: int, *, longest: int = 10_000) -> list[str]:
    """So many different texts, of which every tenth is as long as is allowed."""
    forms = islice(cycle(_FORMS), count)
    texts = [form.format(n=number) for number, form in enumerate(forms)]
    return [
        (text + " x" * longest)[:longest] if number % 10 == 9 else text
        for number, text in enumerate(texts)
    ]


def hostile_names(count: int) -> list[str]:
    """Those that can be names of folders and files, whose bytes are few."""
    texts = (text.replace("/", "\u2215") for text in hostile_texts(count, longest=150))
    return [text for text in texts if len(text.encode()) < 200]
