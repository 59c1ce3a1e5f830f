"""The page: summary, verdicts, figure, tables, theorem, references, provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from exclusivity.experiments.plots import can_plot, draw_all
from exclusivity.experiments.report.style import STYLE
from exclusivity.experiments.report.tables import table1_section, table2_section
from exclusivity.experiments.report.theorem import references_section, theorem_section
from exclusivity.experiments.sets import LARGE
from exclusivity.experiments.study import Study
from exclusivity.experiments.verdicts import Outcome, Verdict
from exclusivity.inspection.markup import figure, gallery, paragraph, section, table, text

_CLASSES = {
    Outcome.HOLDS: "holds",
    Outcome.PART: "part",
    Outcome.FAILS: "fails",
    Outcome.UNCHECKED: "unchecked",
}


def render_page(study: Study) -> str:
    """The report as one HTML text that needs nothing else."""
    plots = draw_all(study.documents)
    sections = {"verdicts": ("Verdicts", verdict_section(study))}
    if "figure1" in study.documents:
        sections["figure1"] = ("Figure 1", figure1_section(study.documents["figure1"], plots))
    if "table1" in study.documents:
        sections["table1"] = ("Table 1", table1_section(study.documents["table1"], plots))
    if "table2" in study.documents:
        sections["table2"] = ("Table 2", table2_section(study.documents["table2"]))
    sections["theorem"] = ("The theorem", theorem_section())
    sections["references"] = ("References", references_section())
    sections["provenance"] = ("How it was made", provenance_section(study.provenance))
    links = "".join(f'<a href="#{anchor}">{text(name)}</a>' for anchor, (name, _) in sections.items())
    body = "".join(part for _, part in sections.values())
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        "<title>Exclusivity Regularized Machine: the paper's evidence, reproduced</title>\n"
        f"<style>{STYLE}</style>\n</head>\n<body>\n"
        "<h1>Exclusivity Regularized Machine: the paper's evidence, reproduced</h1>"
        f"{_summary(study)}<nav>{links}</nav>\n<main>{body}</main>\n</body>\n</html>\n"
    )


def _summary(study: Study) -> str:
    found = study.provenance
    missing = found["missing"]
    parts = [
        paragraph(
            f"Made by erm reproduce on {found['date']}: {found['trials']} trials, seed {found['seed']}"
            + (", quick settings: too few trials and points for firm verdicts." if found["quick"] else ".")
        )
    ]
    if missing:
        parts.append(
            '<p class="note"><b>Missing data sets: '
            f"{text(', '.join(missing))}.</b> Everything else was run without them; how to get them is said "
            'under <a href="#provenance">How it was made</a>.</p>'
        )
    if not can_plot():
        parts.append(
            '<p class="note"><b>No plots:</b> matplotlib is not installed. '
            "<code>pip install 'exclusivity[plot]'</code> and the same command again draw them from the "
            "finished trials.</p>"
        )
    return "".join(parts)


def verdict_section(study: Study) -> str:
    """How many claims hold, and every one of them."""
    counts = Counter(verdict.outcome for verdict in study.verdicts)
    items = "".join(f"<li><b>{counts[outcome]}</b>{text(outcome.value)}</li>" for outcome in Outcome)
    return section(
        "verdicts",
        "Which claims hold",
        f'<ul class="counts">{items}</ul>',
        *(_verdict(verdict) for verdict in study.verdicts),
    )


def _verdict(verdict: Verdict) -> str:
    return (
        f'<article class="verdict {_CLASSES[verdict.outcome]}" id="{text(verdict.key)}">'
        f'<h3><span class="tag">{text(verdict.outcome.value)}</span>{text(verdict.claim)}</h3>'
        f'<p class="where">{text(verdict.where)}</p>'
        f"<p><b>Measured:</b> {text(verdict.number)}.</p><p>{text(verdict.reason)}</p></article>"
    )


def figure1_section(document: Mapping[str, Any], plots: Mapping[str, str]) -> str:
    """The four panels, and the plot that the paper does not have."""
    parts: list[str] = []
    sweep, convergence = document["sweep"], document["convergence"]
    if sweep is None:
        parts.append(paragraph("Panels 1 and 2 were not run: sonar was not there."))
    else:
        parts.append(
            gallery(
                figure(
                    plots.get(f"errors-p{p}"),
                    f"Panel {number}: testing (solid) and training errors (dashed), p = {p}.",
                )
                for number, p in ((1, 2), (2, 1))
            )
        )
    if convergence is not None:
        standing = _stand_in(convergence["dataset"])
        panels = [
            figure(plots.get("convergence"), f"Panel 3: objective per iteration{standing}."),
            figure(plots.get("scaling"), f"Panel 4: total training time against rows{standing}."),
        ]
        parts += [gallery(panels), _iterations(convergence)]
    if sweep is not None:
        parts.append(_members_or_cost(plots))
    return section("figure1", "Figure 1: errors against lambda, convergence, training time", *parts)


def _members_or_cost(plots: Mapping[str, str]) -> str:
    return (
        "<h3>Members or cost?</h3>"
        + paragraph(
            "K members at lambda beside one SVM at lambda/K. The optimum of the ensemble (thin) lies on the "
            "one SVM (wide): what there is to gain over an SVM at lambda (grey) comes from the smaller "
            "cost. Algorithm 2 (dotted) ends elsewhere, because it stops before its optimum."
        )
        + gallery(
            figure(
                plots.get(f"cost-p{p}"),
                f"Testing errors of ERM and of the one SVM of matched cost, p = {p}.",
            )
            for p in (2, 1)
        )
    )


def _stand_in(dataset: str) -> str:
    return "" if dataset == LARGE else f" ({dataset} in place of ijcnn1, which is missing)"


def _iterations(document: Mapping[str, Any]) -> str:
    rows = [
        [
            text(f"L{run['p']}-ERM{run['members']}"),
            text(run["rule"] or f"not within {len(run['objective'])}"),
            text(f"{run['gap']:.1e}"),
        ]
        for run in document["runs"]
    ]
    header = ["method", "stops by the rule of 0.05 after", "relative duality gap at the end"]
    return table(header, rows, f"Algorithm 2 on {document['dataset']}")


def provenance_section(found: Mapping[str, Any]) -> str:
    """Seeds, versions, machine, data."""
    rows = [
        [text(name), text(f"{data['rows']} x {data['features']}"), text(data["source"])]
        for name, data in found["datasets"].items()
    ]
    facts = {
        "splits": found["splits"],
        "seed": found["seed"],
        "trials": found["trials"],
        "versions": ", ".join(f"{name} {version}" for name, version in found["versions"].items()),
        "machine": ", ".join(f"{name}: {value}" for name, value in found["machine"].items()),
    }
    items = "".join(f"<li>{text(name)}: <code>{text(value)}</code></li>" for name, value in facts.items())
    # Addresses as words: a page that stands alone should not even look as if it loaded something.
    reasons = {name: why.replace("https://", "") for name, why in found["missing"].items()}
    missing = "".join(f"<li><b>{text(name)}</b>: {text(why)}</li>" for name, why in reasons.items())
    return section(
        "provenance",
        "How it was made",
        f"<ul>{items}</ul>",
        table(["data set", "size", "source"], rows, "Data"),
        f"<h3>Missing</h3><ul>{missing}</ul>" if missing else "",
    )
