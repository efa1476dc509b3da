"""Tests of prepare.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import prepare  # noqa: E402

FILES = {"CHANGELOG.md", "docs/jobs.md", "docs/reference/api.md", "docs/reference/rest.json", "docs/images/page.png", "tests/e2e"}


def convert(text, page="docs/clusters.md"):
    """Converts a text with the files above."""
    return prepare.convert(text, page, FILES.__contains__, "tests/e2e".__eq__)


class TestConvert(unittest.TestCase):
    def test_links(self):
        web = prepare.REPOSITORY
        for name, page, text, want in [
            ("a page stays", "docs/clusters.md", "[jobs](jobs.md#retries)", "[jobs](jobs.md#retries)"),
            ("a page above stays", "docs/reference/api.md", "[jobs](../jobs.md)", "[jobs](../jobs.md)"),
            ("a file outside is on the web", "docs/clusters.md", "[c](../CHANGELOG.md#v1)", f"[c]({web}/blob/main/CHANGELOG.md#v1)"),
            ("a directory is on the web", "docs/reference/api.md", "[t](../../tests/e2e)", f"[t]({web}/tree/main/tests/e2e)"),
            ("data beside a page is on the web", "docs/reference/api.md", "[d](rest.json)", f"[d]({web}/blob/main/docs/reference/rest.json)"),
            ("an image stays", "docs/page.md", "![p](images/page.png)", "![p](images/page.png)"),
            ("what is missing stays, so that the build fails", "docs/clusters.md", "[x](../x.md)", "[x](../x.md)"),
            ("an address stays", "docs/clusters.md", "[ray](https://docs.ray.io)", "[ray](https://docs.ray.io)"),
            ("an anchor of the page stays", "docs/clusters.md", "[a](#a)", "[a](#a)"),
            ("two links of a line", "docs/clusters.md", "[a](jobs.md) [t](../tests/e2e)", f"[a](jobs.md) [t]({web}/tree/main/tests/e2e)"),
        ]:
            with self.subTest(name):
                self.assertEqual(convert(text, page), want)

    def test_anchors_become_targets(self):
        self.assertEqual(convert('| <a id="a-b"></a>`A` |'), "| []{#a-b}`A` |")

    def test_code_stays(self):
        code = '```html\n<a id="a"></a> [c](../CHANGELOG.md)\n```'
        self.assertEqual(convert(code), code)


if __name__ == "__main__":
    unittest.main()
