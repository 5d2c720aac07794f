"""Builds the site from the Markdown files as GitHub shows them.

The hook adds pages from outside the directory docs. It corrects links, because a page can have
another path than its file, and because many links lead to files that are not on the site. It also
converts lists to the indentation that Python-Markdown requires.
"""

import logging
import posixpath
import re
import subprocess
from pathlib import Path

from mkdocs.structure.files import File

log = logging.getLogger("mkdocs.hooks.ordergraph")
ROOT = Path(__file__).parents[2]
# Files outside docs, and their pages.
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "embedded/README.md": "embedded.md",
}
SOURCES = {page: source for source, page in PAGES.items()}
DECISIONS = "adr/index.md"
MERMAID = "assets/mermaid.min.js"


def decisions():
    """Returns the paths of all decisions, without the template."""
    return sorted(f"adr/{p.name}" for p in (ROOT / "docs/adr").glob("0*.md") if p.name != "0000-template.md")


def on_config(config):
    config.nav.append({"Decisions": [DECISIONS, *decisions()]})
    tag = subprocess.run(["git", "describe", "--exact-match", "--tags"], cwd=ROOT, capture_output=True, text=True)
    config.extra["ref"] = tag.stdout.strip() or "main"
    return config


def on_files(files, config):
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    titles = [(p, (ROOT / "docs" / p).read_text().split("\n", 1)[0].removeprefix("# ")) for p in decisions()]
    entries = "\n".join(f"- [{title}]({posixpath.basename(path)})" for path, title in titles)
    script = next((ROOT / "build").glob("mermaid-*.min.js"))
    files.append(File.generated(config, MERMAID, abs_src_path=str(script)))
    files.append(File.generated(config, DECISIONS, content=f"# Decisions\n\n{entries}\n"))
    return files


def on_page_markdown(markdown, page, config, files):
    path = page.file.src_uri
    source = SOURCES.get(path, "docs/" + path)

    def link(match):
        target, anchor = match[1], match[2] or ""
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if target == "docs/adr":
            target = "docs/" + DECISIONS
        here = PAGES.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
        if here and (there := files.get_file_from_path(here)) and not there.inclusion.is_excluded():
            return f"]({posixpath.relpath(here, posixpath.dirname(path) or '.')}{anchor})"
        if not (ROOT / target).exists():
            log.warning("%s: the link %s leads to no file", source, match[1])
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"]({config.repo_url}/{kind}/{config.extra['ref']}/{target}{anchor})"

    # Links are only corrected outside of code.
    parts = re.split(r"(^ *```.*?^ *```|`[^`\n]+`)", lists(markdown), flags=re.M | re.S)
    return "".join(part if i % 2 else re.sub(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", link, part) for i, part in enumerate(parts))


def on_page_content(html, page, config, files):
    if 'class="mermaid"' in html:
        html += f'<script src="{posixpath.relpath(MERMAID, page.url or ".")}"></script>'
    return html


def lists(markdown):
    """Indents the content of list items by four spaces, and adds a blank line before each list."""
    out, indent, code = [], 0, False
    for line in markdown.split("\n"):
        if line.lstrip().startswith("```"):
            code = not code
        item = None if code else re.match(r"([-*]|\d+\.) +", line)
        if item:
            if not indent and out and out[-1].strip():
                out.append("")
            indent = item.end()
        elif indent and line.startswith(" " * indent):
            line = " " * (4 - indent) + line
        elif line.strip():
            indent = 0
        out.append(line)
    return "\n".join(out)
