"""Writes the pages of docs/ as Sphinx reads them: prepare.py REPOSITORY DIRECTORY.

Links to files outside of docs/ become links to the repository on the web, as a site has no such files. Anchors that a page has as
HTML become targets, so that links to them are checked. The page index.md has the navigation.
"""

import os
import posixpath
import re
import shutil
import sys

REPOSITORY = "https://github.com/heliostat-dev/heliostat"

LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
FENCE = re.compile(r"^ *```")
PAGE = ".md"
KEPT = (PAGE, ".png", ".svg")


def address_of(target, page, exists, is_directory):
    """Returns the address of a relative link on a page, as the site has it."""
    if re.match(r"[a-z]+:", target) or target.startswith("/"):
        return target
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
    if path.startswith("docs/") and path.endswith(KEPT) or not exists(path):
        return target
    return f"{REPOSITORY}/{'tree' if is_directory(path) else 'blob'}/main/{path}"


def convert(text, page, exists, is_directory):
    """Returns the text of a page for Sphinx. Blocks of code stay as they are."""
    lines, is_code = [], False
    for line in text.split("\n"):
        if FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            line = ANCHOR.sub(r"[]{#\1}", line)
            line = LINK.sub(lambda m: m[1] + address_of(m[2], page, exists, is_directory) + m[3], line)
        lines.append(line)
    return "\n".join(lines)


def prepare(root, out):
    """Writes all pages of a repository, the settings and the navigation into a directory."""

    def exists(path):
        return os.path.exists(os.path.join(root, path))

    def is_directory(path):
        return os.path.isdir(os.path.join(root, path))

    for directory, _, names in os.walk(os.path.join(root, "docs")):
        for name in names:
            if not name.endswith(KEPT):
                continue
            path = os.path.join(directory, name)
            page = os.path.relpath(path, root).replace(os.sep, "/")
            to = os.path.join(out, os.path.relpath(page, "docs"))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if not name.endswith(PAGE):
                shutil.copy(path, to)
                continue
            with open(path, encoding="utf-8") as file:
                text = convert(file.read(), page, exists, is_directory)
            with open(to, "w", encoding="utf-8") as file:
                file.write(text)
    here = os.path.dirname(os.path.abspath(__file__))
    for name in ("conf.py", "index.md"):
        shutil.copy(os.path.join(here, name), out)


if __name__ == "__main__":
    prepare(sys.argv[1], sys.argv[2])
