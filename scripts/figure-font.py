#!/usr/bin/env python3
"""Makes the fonts of exported figures from Arimo (OFL 1.1, Debian's fonts-croscore): the characters of WinAnsiEncoding,
without hints. Needs fontTools. Prints the widths that font.rs has.

    python3 scripts/figure-font.py FOLDER-WITH-ARIMO
"""

import pathlib
import sys

from fontTools import subset
from fontTools.ttLib import TTFont

TARGET = pathlib.Path(__file__).parent.parent / "testbed/ebbtide-report/src/export/font"


def main() -> None:
    source = pathlib.Path(sys.argv[1])
    texts = [bytes([code]).decode("cp1252", "ignore") for code in range(32, 256)]
    for name in ("Regular", "Bold"):
        options = subset.Options(hinting=False, layout_features=[], name_IDs=[0, 1, 2, 5, 6, 13, 14], notdef_outline=True)
        options.drop_tables += ["DSIG", "GDEF", "GPOS", "GSUB", "gasp", "kern"]
        font = TTFont(source / f"Arimo-{name}.ttf", recalcTimestamp=False)
        subsetter = subset.Subsetter(options)
        subsetter.populate(text="".join(texts))
        subsetter.subset(font)
        font.save(TARGET / f"{name.lower()}.ttf")
        glyphs, advances, unit = font.getBestCmap(), font["hmtx"], font["head"].unitsPerEm
        widths = [round(advances[glyphs[ord(text)]][0] * 1000 / unit) if text and ord(text) in glyphs else 0 for text in texts]
        head, hhea, os2 = font["head"], font["hhea"], font["OS/2"]
        scaled = [round(value * 1000 / unit) for value in (head.xMin, head.yMin, head.xMax, head.yMax)]
        print(name, widths, "box", scaled, "ascent", round(hhea.ascent * 1000 / unit), "descent", round(hhea.descent * 1000 / unit), "capitals", round(os2.sCapHeight * 1000 / unit))


if __name__ == "__main__":
    main()
