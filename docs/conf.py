"""Settings of the documentation site; ``make docs`` builds it into ``docs/_build/html``."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.fileutil import copy_asset

sys.path.insert(0, str(Path(__file__).parent))

project = "exclusivity"
author = "The exclusivity developers"
project_copyright = author
version = release = installed_version("exclusivity")

extensions = [
    "myst_parser",
    "numpydoc",
    "plain_docstrings",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.md5", "gallery/sg_execution_times.rst", "sg_*"]
highlight_language = "none"  # blocks without a language are output; doctests are found anyway
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
copybutton_selector = "div.highlight-python pre, div.highlight-sh pre, div.highlight-bash pre"
mathjax_path = "mathjax/tex-chtml.js"  # shipped with the site, see ship_mathjax

autosummary_filename_map = {"exclusivity.robustness.Attack": "exclusivity.robustness.Attack-class"}
"""Two names that differ in case only would share one file on macOS and Windows."""

autodoc_typehints = "none"  # the Parameters sections say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the class template lists them, with what they take

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",  # every example is run
    "within_subsection_order": "gallery_order.FromUsesToMembers",
    "abort_on_example_error": True,
    "capture_repr": (),  # what an example shows, it prints or draws
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
}

html_theme = "furo"
html_title = f"exclusivity {release}"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/project.html",
        "sidebar/scroll-end.html",
    ]
}
html_css_files = ["site.css"]
html_theme_options = {"light_css_variables": {"code-font-size": "0.78em"}}  # room for 90 characters
html_show_sourcelink = False
html_copy_source = False


def skip_inherited(_app: Any, what: str, _name: str, member: Any, skip: bool, _options: Any) -> bool:
    """Leave out what scikit-learn and dataclasses add: the reference is about this package."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
    home = getattr(function, "__module__", None)
    return skip or (what == "class" and home is not None and not home.startswith("exclusivity"))


def describe_pictures(_app: Any, doctree: nodes.document) -> None:
    """Say of a thumbnail which example it belongs to: sphinx-gallery leaves its alternative text empty."""
    for picture in doctree.findall(nodes.image):
        if not picture.get("alt"):
            name = Path(picture["uri"]).stem.removeprefix("sphx_glr_").removesuffix("_thumb")
            picture["alt"] = f"the first picture of the example {name.replace('_', ' ')}"


def ship_mathjax(app: Any, error: Exception | None) -> None:
    """Put what draws the formulas beside the pages, so that they need no network (and no more than that)."""
    package = find_spec("sphinx-mathjax-offline")
    if error is None and package is not None and package.origin is not None:
        source = Path(package.origin).parent / "static" / "mathjax"
        target = Path(app.outdir) / "_static" / "mathjax"
        fonts = Path("output", "chtml", "fonts", "woff-v2")
        copy_asset(source / "tex-chtml.js", target)
        copy_asset(source / fonts, target / fonts)


def setup(app: Any) -> None:
    """Connect the rules above."""
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("doctree-read", describe_pictures)
    app.connect("build-finished", ship_mathjax)
