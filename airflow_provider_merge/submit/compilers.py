"""How Java compiles a driver, which lives for seconds as a rule and for hours at times.

Java's second compiler makes faster code, and for a small statement it costs a third of all CPU
time. The first compiler alone also spares the counting of what runs how often, which slows the code
that waits for the second one by a third.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from airflow_provider_merge.submit.class_archive import OPTIONS

# The names are those of HotSpot's tiered compilation, the values its defaults.
_FIRST: Final = {
    "Tier3InvocationThreshold": 200,
    "Tier3MinInvocationThreshold": 100,
    "Tier3CompileThreshold": 2_000,
}
_SECOND: Final = {
    "Tier4InvocationThreshold": 5_000,
    "Tier4MinInvocationThreshold": 600,
    "Tier4CompileThreshold": 15_000,
    "Tier4BackEdgeThreshold": 40_000,
}
_FIRST_TIMES: Final = 5
_SECOND_TIMES: Final = 100


def compiler_options(variables: Mapping[str, str], *, both: bool) -> str:
    """What the variable ``OPTIONS`` says, before what it says in ``variables``, which wins.

    The first compiler waits until a method has run five times as often as Java would ask for; the
    second, if there are ``both``, a hundred times as often: a loop over rows gets there within a
    second, the start of Spark never does. A Java that has no such options ignores them.
    """
    thresholds = {name: _FIRST_TIMES * value for name, value in _FIRST.items()}
    if both:
        thresholds |= {name: _SECOND_TIMES * value for name, value in _SECOND.items()}
    else:
        thresholds["TieredStopAtLevel"] = 1
    options = ["-XX:+IgnoreUnrecognizedVMOptions"]
    options += [f"-XX:{name}={value}" for name, value in thresholds.items()]
    return " ".join([*options, variables.get(OPTIONS, "")]).strip()
