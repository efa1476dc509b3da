"""Settings of Sphinx for the documentation site. hack/site/build.sh runs it on what prepare.py writes."""

project = "Heliostat"
extensions = ["myst_parser", "sphinxcontrib.mermaid"]
source_suffix = {".md": "markdown"}
root_doc = "index"
html_theme = "furo"
html_title = "Heliostat"
html_static_path = ["_static"]
html_copy_source = False
myst_heading_anchors = 6
myst_enable_extensions = ["attrs_inline"]
myst_fence_as_directive = ["mermaid"]
mermaid_use_local = "mermaid/mermaid.esm.min.mjs"
