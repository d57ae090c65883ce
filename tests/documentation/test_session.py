"""A page that shows something else than what happens fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documentation.blocks import blocks_of
from tests.documentation.session import Session

pytestmark = [
    pytest.mark.compiles,  # a kernel takes as long to start as a compiler
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


def run(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    folders = iter(range(100))

    def fresh_folder() -> Path:
        (folder := tmp_path / f"folder{next(folders)}").mkdir()
        return folder

    session = Session(fresh_folder)
    try:
        for block in blocks_of(page):
            session.run(block)
    finally:
        session.close()


RIGHT = """
<!-- setup: echo 41 >number -->
```console
$ mkdir -p a && cd a
$ pwd | sed 's,.*/,,'
a
$ cat ../number
41
```

```console exit=3
$ exit 3
```

```console exit=any
$ exit 5
```

```python
print("hello")
6 * 7
```

```output
hello
42
```

```python raises=ValueError
raise ValueError("no")
```

```output
ValueError: no
```

```python file=module.py
VALUE = 1
OTHER = 2
```

```diff apply=module.py
-VALUE = 1
+VALUE = 3
 OTHER = 2
```

```python
import module
module.VALUE
```

```output
3
```

```python excerpt=module.py
...
OTHER = 2
```

<!-- fresh folder -->

```console
$ ls -A
$ test ! -e ../module.py
```
"""


def test_a_page_that_shows_what_happens_passes(tmp_path: Path) -> None:
    run(tmp_path, RIGHT)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("41\n```", "40\n```", "the page shows"),
        ("$ exit 3", "$ exit 4", r"`exit 4` exited with 4, not 3"),
        ("hello\n42", "hello\n43", "the page shows"),
        ("raises=ValueError", "", "raised ValueError, not nothing"),
        ("raises=ValueError", "raises=KeyError", "raised ValueError, not KeyError"),
        ("ValueError: no", "ValueError: yes", "the page shows"),
        ("-VALUE = 1", "-VALUE = 2", "has these lines 0 times"),
        ("...\nOTHER = 2", "...\nOTHER = 9", r"module.py has no line 'OTHER = 9' here"),
        ("<!-- setup: echo 41 >number -->", "<!-- setup: false -->", "false exited with 1"),
        ("<!-- fresh folder -->", "", r"exited with 1, not 0"),
        ("```python excerpt=module.py", "```cpp", "nothing runs cpp by itself"),
    ],
)
def test_a_page_that_shows_something_else_fails(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    assert RIGHT.count(right) >= 1
    with pytest.raises(AssertionError, match=message):
        run(tmp_path, RIGHT.replace(right, wrong, 1))


@pytest.mark.parametrize(
    ("fence", "message"),
    [
        ("```", "the code block has no language"),
        ("```python run=yes", "unknown attribute run; expected one of"),
    ],
)
def test_a_fence_that_the_runner_does_not_know_is_rejected(tmp_path: Path, fence: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(tmp_path, f"{fence}\n1\n```\n")


def test_a_console_block_begins_with_a_command(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="begins with 'output'; expected a command"):
        run(tmp_path, "```console\noutput\n```\n")
