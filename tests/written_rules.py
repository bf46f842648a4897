"""Rules for the commands in documents: where each is run, or why it is not.

The first rule whose pattern matches applies. A command without a rule fails a test. All Winnow
commands are parsed, except under a SHELL rule.
"""

from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

from written import Command


class How(Enum):
    RUN = "run here, page by page"
    SERVED = "the cluster that the page's other commands ask has its options"
    ELSEWHERE = "run by another test"
    PARSED = "only parsed"
    SHELL = "not Winnow's own"


@dataclass(frozen=True)
class Rule:
    pattern: str
    how: How
    why: str = ""
    """The test file that runs the command, or the reason why none does."""
    page: str = "*"


_LONG = "takes hours, and data that is not in the project"
_MODELS = "tests/models/test_command_line.py"
_HEADS = "tests/models/test_heads.py"
_NAMES = "names machines and files of its reader"
_MEASURES = "measures, on a quiet machine"
_DEMO = ".ci/run"

RULES = (
    Rule("winnow *", How.ELSEWHERE, "tests/standalone/test_tenants.py", page="docs/tenants.md"),
    # made and asked while the page is read
    Rule(
        "winnow index build * --engine ray*",
        How.ELSEWHERE,
        "tests/content_node/indexing/test_ray.py",
    ),
    Rule("winnow ask * --token-file *", How.ELSEWHERE, "tests/winnow/cli/test_access.py"),
    Rule("winnow ask --on *", How.ELSEWHERE, "tests/system/test_named_indexes.py"),
    Rule("winnow feed * --on *", How.ELSEWHERE, "tests/system/test_named_indexes.py"),
    Rule("winnow ask *", How.RUN),
    Rule("winnow predict *", How.RUN),
    Rule("winnow search *", How.RUN),
    Rule("winnow passages *", How.RUN),
    Rule("winnow feed * --on *", How.ELSEWHERE, "tests/system/test_named_indexes.py"),
    Rule("winnow feed *", How.RUN),
    Rule("winnow index inspect *", How.RUN),
    Rule("winnow index verify *", How.RUN),
    Rule(
        "winnow index states * --bundle *",
        How.PARSED,
        "the reader that it needs is trained for an hour",
    ),
    Rule("winnow index states *", How.RUN),
    Rule("winnow index token-vectors INDEX", How.PARSED, _MEASURES),
    Rule("winnow index token-vectors *", How.RUN),
    Rule(
        "winnow index snapshot *",
        How.ELSEWHERE,
        "tests/system/test_snapshots.py",
        page="docs/indexes.md",
    ),
    Rule("winnow index snapshot* *", How.RUN),
    Rule("winnow index restore *", How.RUN),
    Rule("winnow index build --passages my*", How.RUN),
    Rule("winnow index build --passages FILE *", How.RUN),
    Rule("winnow heads publish tickets-head *", How.RUN),
    Rule("winnow heads list *", How.RUN),
    Rule("winnow heads pin *", How.RUN),
    Rule("winnow heads verify *", How.RUN),
    Rule("winnow keys *", How.RUN),
    Rule("winnow plan * --units *", How.ELSEWHERE, "tests/winnow/cli/plan"),
    Rule("winnow plan *", How.RUN),
    Rule("winnow up --documents FOLDER", How.ELSEWHERE, "tests/system/test_documents.py"),
    Rule("winnow mcp *", How.ELSEWHERE, "tests/system/test_agents.py"),
    Rule("claude *", How.SHELL, "is no package; tests/stateless/mcp calls the address"),
    Rule("winnow sync *", How.ELSEWHERE, "tests/system/test_documents.py"),
    Rule("winnow up --index my-index*", How.SERVED),
    Rule("winnow up --index index --feed-listen *", How.SERVED),
    # the demo
    Rule("make demo*", How.ELSEWHERE, _DEMO),
    Rule("make test", How.ELSEWHERE, _DEMO),
    Rule("make models", How.SHELL, "`make test` does it first"),
    Rule("*", How.PARSED, "`make demo` does the same", page="deploy/demo/README.md"),
    # what serves
    Rule("winnow node *", How.ELSEWHERE, "tests/system/test_scaling.py", page="docs/scaling.md"),
    Rule("winnow front *", How.ELSEWHERE, "tests/system/test_scaling.py", page="docs/scaling.md"),
    Rule("winnow node * --pull *", How.ELSEWHERE, "tests/system/test_snapshots.py"),
    Rule("winnow node * --journal *", How.ELSEWHERE, "tests/system/test_fed_replicas.py"),
    Rule("winnow node *", How.PARSED, _NAMES),
    Rule("winnow front * --rings *", How.PARSED, _NAMES),
    Rule("winnow front *", How.PARSED, _NAMES),
    Rule("winnow reader *", How.ELSEWHERE, "tests/stateless/reading/test_main.py"),
    Rule("winnow read *", How.ELSEWHERE, "tests/stateless/reading/test_main.py"),
    Rule("winnow encoder *", How.ELSEWHERE, "tests/system/test_decoupled.py"),
    Rule("winnow heads serve *", How.ELSEWHERE, "tests/system/test_decoupled.py"),
    Rule("nats-server *", How.ELSEWHERE, "tests/nats_server.py"),
    Rule("pytest *", How.ELSEWHERE, _DEMO),
    # tools
    Rule("winnow bench unit-costs *", How.ELSEWHERE, "tests/winnow/cli/units"),
    Rule("winnow indexes rebuild *", How.ELSEWHERE, "tests/system/test_rebuilt_index.py"),
    Rule("winnow indexes compare *", How.ELSEWHERE, "tests/winnow/cli/indexes"),
    Rule("winnow indexes *", How.ELSEWHERE, "tests/content_node/assigned/test_indexes_cli.py"),
    Rule("winnow shards*", How.ELSEWHERE, "tests/winnow/cli/shards"),
    Rule("winnow top*", How.ELSEWHERE, "tests/winnow/cli/top"),
    Rule("winnow bundle *", How.ELSEWHERE, "tests/winnow/test_bundle_places.py"),
    Rule("openssl *", How.SHELL, "makes certificates; tests make theirs without it"),
    Rule("printf *", How.SHELL, "is for a certificate"),
    # models
    Rule("winnow heads refit *", How.ELSEWHERE, "tests/models/test_heads_refit.py"),
    Rule("winnow heads publish var/tickets *", How.PARSED, "is run for docs/heads.md"),
    Rule("winnow models train-head *", How.ELSEWHERE, _HEADS),
    Rule("winnow models measure-heads *", How.ELSEWHERE, "tests/models/test_heads_measuring.py"),
    Rule("winnow models export *", How.ELSEWHERE, _MODELS),
    Rule("winnow models random *", How.ELSEWHERE, "tests/models/test_export_random.py"),
    Rule("winnow models *", How.PARSED, _LONG),
    Rule("LD_PRELOAD=*", How.SHELL, "leaves the options out"),
    # figures
    Rule("winnow index build *", How.PARSED, _LONG),
    Rule("winnow up --index *", How.PARSED, _LONG),
    Rule("winnow evaluate *", How.PARSED, _MEASURES),
    Rule("winnow bench *", How.PARSED, _MEASURES),
    Rule("winnow pareto *", How.PARSED, _MEASURES),
    Rule("python -m bench *", How.PARSED, _MEASURES),
    # dashboards
    Rule("promtool *", How.ELSEWHERE, "tests/deploy"),
    Rule("make simulate *", How.ELSEWHERE, "tests/simulation/test_simulation.py"),
    Rule("python -m simulation tails *", How.ELSEWHERE, "tests/simulation/test_tails.py"),
    Rule("python -m simulation *", How.ELSEWHERE, "tests/simulation/test_simulation.py"),
    # releases
    Rule("python -m hatchling build *", How.ELSEWHERE, "tests/distribution"),
    Rule("(cd client && *", How.ELSEWHERE, "tests/distribution"),
    Rule("twine *", How.SHELL, "is no dependency"),
    Rule("make sbom", How.ELSEWHERE, "tests/distribution/test_sbom.py"),
    Rule("VERSION=* docker *", How.SHELL, "publishes"),
    # other people's
    Rule("tail *", How.SHELL, "makes an index for a measurement"),
    Rule("source *", How.SHELL, "changes the shell that it is typed into"),
    Rule("grpcurl *", How.SHELL, "is no package; its request is parsed"),
    Rule("python deploy/try_compose.py *", How.SHELL, "needs an engine, and a registry of images"),
    Rule("docker *", How.SHELL, "needs an engine, and a registry of images"),
    Rule("helm *", How.SHELL, "needs a cluster; tests/deploy renders and checks the chart"),
    Rule("kubectl *", How.SHELL, "needs a cluster"),
    Rule("pip install *", How.SHELL, "downloads"),
    Rule("python -m venv size *", How.SHELL, "downloads"),
    Rule("python3.11 -m pip download *", How.SHELL, "downloads"),
    Rule("for *", How.SHELL, "downloads"),
    Rule("hf download *", How.SHELL, "downloads"),
    Rule("done", How.SHELL, "downloads"),
    Rule("curl http://127.0.0.1:8088/*", How.SHELL, "is no package; tests/stateless/http asks"),
    Rule("curl *", How.SHELL, "downloads"),
    Rule("export *", How.SHELL, "changes the shell that it is typed into"),
)


PROGRAMS = {
    "docs/security.md": "tests/winnow/client",
    "docs/integrations.md": "integrations/testing",
    "integrations/haystack-winnow/README.md": "integrations/testing",
    "integrations/langchain-winnow/README.md": "integrations/testing",
    "integrations/llama-index-winnow/README.md": "integrations/testing",
    "docs/reading.md": "tests/stateless/reading/test_main.py",
}
"""Pages whose Python programs are not run, and the tests of similar programs."""


def rule_of(command: Command) -> Rule | None:
    """Returns the first rule that matches, or None."""
    fitting = (
        rule
        for rule in RULES
        if fnmatchcase(command.text, rule.pattern) and fnmatchcase(command.page, rule.page)
    )
    return next(fitting, None)
