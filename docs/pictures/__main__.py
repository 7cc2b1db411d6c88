"""Take pictures of the dashboard, when pages look different: `.venv/bin/python -m docs.pictures [NAME...]`.

It needs chromium, chromedriver and the package modsecurity-crs.

Owns  the files docs/pictures/*.png.
Not   what is on them (`docs.pictures.pages`).
"""

import sys
import tempfile
from pathlib import Path

from docs.pictures.example import Example
from docs.pictures.pages import PICTURES
from docs.pictures.taking import photographer

FOLDER = Path(__file__).parent


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        example = Example(Path(folder))
        try:
            example.fill()
            with photographer(example, Path(folder) / "chromium") as camera:
                for picture in PICTURES:
                    if not names or picture.name in names:
                        content = camera.take(picture)
                        (FOLDER / f"{picture.name}.png").write_bytes(content)
                        sys.stdout.write(f"{picture.name}.png: {len(content):,} bytes\n")
        finally:
            example.close()


if __name__ == "__main__":
    main(sys.argv[1:])
