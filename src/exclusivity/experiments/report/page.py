"""The page: summary, verdicts, figure, tables, theorem, references, provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from exclusivity.experiments.plots import draw_all
from exclusivity.experiments.report.tables import panels, rank_caption, table1_section, table2_section
from exclusivity.experiments.report.theorem import references_section, theorem_section
from exclusivity.experiments.sets import LARGE
from exclusivity.experiments.study import Study
from exclusivity.experiments.verdicts import Outcome, Verdict
from exclusivity.pages import can_plot, counts, figure, page, paragraph, section, table, text

_COST_CAPTION = (
    "Testing errors of K members at lambda (thin: the optimum; dotted: Algorithm 2) beside one SVM of the "
    "matched cost lambda/K (wide), p ="
)
_PLURALS = {
    Outcome.HOLDS: "hold",
    Outcome.PART: "hold in part",
    Outcome.FAILS: "fail",
    Outcome.UNCHECKED: "could not be checked",
}
_CLASSES = {
    Outcome.HOLDS: "holds",
    Outcome.PART: "part",
    Outcome.FAILS: "fails",
    Outcome.UNCHECKED: "unchecked",
}


def render_page(study: Study) -> str:
    """The report as one HTML text that needs nothing else."""
    plots = draw_all(study.documents)
    lead = _lead(study, plots)
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
    title = "Exclusivity Regularized Machine: the paper's evidence, reproduced"
    return page(title, lead, _summary(study), f"<nav>{links}</nav>\n<main>{body}</main>")


def _lead(study: Study, plots: dict[str, str]) -> str:
    """One sentence and one picture, which is taken from ``plots``: it is not shown twice."""
    found = Counter(verdict.outcome for verdict in study.verdicts)
    words = ", ".join(f"{found[outcome]} {word}" for outcome, word in _PLURALS.items() if found[outcome])
    sentence = (
        f'<p class="lead">Of {len(study.verdicts)} claims, each judged by a number: {words}. At its optimum '
        'an ERM of K members is one SVM of cost lambda/K (<a href="#theorem">proof</a>).</p>'
    )
    captions = {"cost-p2": f"{_COST_CAPTION} 2."}
    if "ranks" in plots:
        captions["ranks"] = rank_caption(study.documents["table1"])
    for name, caption in captions.items():
        if name in plots:
            return sentence + figure(plots.pop(name), caption)
    return sentence


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
    found = Counter(verdict.outcome for verdict in study.verdicts)
    return section(
        "verdicts",
        "Which claims hold",
        counts((found[outcome], outcome.value) for outcome in Outcome),
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
            panels(
                plots,
                {
                    f"errors-p{p}": f"Panel {number}: testing (solid) and training errors (dashed), p = {p}."
                    for number, p in ((1, 2), (2, 1))
                },
            )
        )
    if convergence is not None:
        standing = _stand_in(convergence["dataset"])
        captions = {
            "convergence": f"Panel 3: objective per iteration{standing}.",
            "scaling": f"Panel 4: total training time against rows{standing}.",
        }
        parts += [panels(plots, captions), _iterations(convergence)]
    if sweep is not None:
        parts.append(_members_or_cost(plots))
    return section("figure1", "Figure 1: errors against lambda, convergence, training time", *parts)


def _members_or_cost(plots: Mapping[str, str]) -> str:
    return (
        "<h3>Members or cost?</h3>"
        + paragraph(
            "K members at lambda beside one SVM at lambda/K (p = 2: at the top of this page). The optimum of "
            "the ensemble (thin) lies on the one SVM (wide): what there is to gain over an SVM at lambda "
            "(grey) comes from the smaller cost. Algorithm 2 (dotted) ends elsewhere: it stops too early."
        )
        + panels(plots, {f"cost-p{p}": f"{_COST_CAPTION} {p}." for p in (2, 1)})
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
