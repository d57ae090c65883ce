"""Prints how many code blocks the documentation has, what the tests do with them, and which cannot run.

python -m tests.documentation
"""

from __future__ import annotations

from collections import Counter

from tests.documentation.blocks import Block, blocks_of
from tests.documentation.pages import ROOT, pages


def _use(block: Block) -> str:
    if needs := block.attributes.get("needs"):
        return f"needs {needs}"
    return block.use


def main() -> None:
    """Print a row for each page, and the blocks that cannot run with their reasons."""
    total: Counter[str] = Counter()
    reasons = []
    for page in pages():
        blocks = [block for block in blocks_of(page) if not block.is_directive]
        uses = Counter(map(_use, blocks))
        total += uses
        counts = ", ".join(f"{use} {count}" for use, count in sorted(uses.items()))
        print(f"{page.relative_to(ROOT)}: {len(blocks)} blocks" + (f": {counts}" if counts else ""))
        reasons += [
            f"{page.relative_to(ROOT)}:{one.line}: {one.attributes['skip']}" for one in blocks if one.use == "skip"
        ]
    print(
        f"\nall pages: {total.total()} blocks: " + ", ".join(f"{use} {count}" for use, count in sorted(total.items()))
    )
    print("\ncannot run:", *reasons, sep="\n")


if __name__ == "__main__":
    main()
