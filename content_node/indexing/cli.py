"""`winnow index`: build, states, token-vectors, inspect, verify."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from winnow.bundle import Bundle, load_bundle
from winnow.cli.output import AsJson, console, print_json, printable, table
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.contents import K
from winnow.content_node.indexing.current_shard import CurrentShard, read_current_shard
from winnow.content_node.indexing.engine import Engine, LocalEngine
from winnow.content_node.indexing.plan import BuildPlan, BuildProgress, DocumentSource
from winnow.content_node.indexing.ray_engine import RayEngine
from winnow.content_node.indexing.verify import ShardReport, verify_index
from winnow.content_node.shard.manifest import (
    IndexManifest,
    read_index_manifest,
    read_shard_manifest,
)
from winnow.content_node.shard.writing import GraphPlan
from winnow.content_node.states.advice import reader_name, states_command
from winnow.content_node.states.index import write_states
from winnow.content_node.states.manifest import StatesManifest
from winnow.documents.conversion.converter import DocumentConverter
from winnow.documents.folder import FilePatterns, SkippedFile, list_files
from winnow.documents.formats.registry import is_supported
from winnow.documents.options import BaseUrl, Exclude, Include
from winnow.documents.reading import FolderScanner, ScannedFolder
from winnow.domain.shard import INDEX_FILE, MAX_SHARDS, PASSAGES_PER_SHARD
from winnow.errors import ArtefactError
from winnow.index_directory import present_shards
from winnow.packaged import default_bundle
from winnow.quoting import many
from winnow.reading.states_kind import READER_STATES, TOKEN_VECTORS, StatesKind
from winnow.settings.common import cores
from winnow.settings.values import BUNDLE_HELP, parse_bundle_directory

app = typer.Typer(no_args_is_help=True)

_Directory = Annotated[Path, typer.Argument(help="Directory of the index.")]
_ShardDirectory = Annotated[
    Path, typer.Argument(help="Directory of an index, or of one of its shards.")
]
_Bundle = Annotated[
    Path | None,
    typer.Option(
        parser=parse_bundle_directory,
        metavar="BUNDLE",
        help=BUNDLE_HELP,
        show_default="the default",
    ),
]
_MAX_WORKERS = 4096


class EngineName(str, Enum):
    """The engine that encodes passages."""

    LOCAL = "local"
    RAY = "ray"


@app.command()
def build(
    out: Annotated[Path, typer.Option(help="Directory of the new index; must not exist.")],
    passages: Annotated[
        Path | None,
        typer.Option(
            help="File of passages: TSV (id, text, title) or JSON lines (id, title, text, "
            "metadata), plain, .gz or .zst. Or the directory of an index: its passages and writes "
            "are copied to other shards or the newest format without encoding them again."
        ),
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(
            help="Folder of documents: PDF, Word, PowerPoint, EPUB, HTML, Markdown, "
            "reStructuredText and plain text. Needs the extra `documents`."
        ),
    ] = None,
    include: Include = None,
    exclude: Exclude = None,
    base_url: BaseUrl = "",
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_SHARDS,
            help="Number of shards.",
            show_default=f"one for every {PASSAGES_PER_SHARD:,} passages",
        ),
    ] = None,
    bundle: _Bundle = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="Threads that encode passages and link the graphs.",
            show_default="all cores",
        ),
    ] = None,
    engine: Annotated[
        EngineName,
        typer.Option(
            help="Engine that encodes passages: local (threads of this process) or ray (workers of "
            "a Ray cluster). The index is the same."
        ),
    ] = EngineName.LOCAL,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=_MAX_WORKERS,
            help="With --engine ray: number of workers, each on one core.",
            show_default="all cores of the cluster",
        ),
    ] = None,
    ray_address: Annotated[
        str,
        typer.Option(
            help="With --engine ray: a running Ray cluster, HOST:PORT, or auto for the cluster of "
            "this machine.",
            show_default="a new one on this machine",
        ),
    ] = "",
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Leave bad rows out instead of stopping.")
    ] = False,
    cut: Annotated[
        bool,
        typer.Option(
            "--cut",
            help="Rows are raw documents: cut each into passages of about 100 words, along its "
            "paragraphs and sentences. The passages of document DOC get the ids DOC#0, DOC#1 …",
        ),
    ] = False,
    tenants: Annotated[
        bool,
        typer.Option(
            "--tenants",
            help="Make an index with tenants: each row names its tenant in the field tenant, and "
            "only requests of this tenant find it. Needs JSON lines.",
        ),
    ] = False,
    m: Annotated[
        int, typer.Option(min=4, max=128, help="Number of links of each passage in the HNSW graph.")
    ] = 16,
    ef_construction: Annotated[
        int,
        typer.Option(min=16, max=4096, help="Number of candidates for the links of each passage."),
    ] = 200,
    states: Annotated[
        bool,
        typer.Option(
            "--states",
            help="Precompute reader states, too: up to 1.7 times as many questions a second, for "
            "about 31 KB a passage. `winnow index states` adds them later.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Encode passages and write the shards of an index.

    The index appears only when it is complete. Until then the work is in OUT.partial: run the same
    command again to resume an interrupted build. States are computed after the index is complete:
    run `winnow index states OUT` to resume them. If the bundle has late interaction, the index has
    token vectors, too.
    """
    loaded = load_bundle(bundle or default_bundle())
    if states and loaded.manifest.reader.apart is None:
        raise typer.BadParameter(
            f"the reader of {loaded.directory} is not a split reader, so it has no states: omit "
            "--states, or give a bundle with a split reader, such as the default bundle",
            param_hint="--states",
        )
    if states and (out / INDEX_FILE).exists():
        raise typer.BadParameter(
            f"{out} exists already: to add its states, run "
            f"{states_command(out, loaded.directory)}; or choose another --out",
            param_hint="--states",
        )
    _check_source(passages, documents, cut=cut, tenants=tenants)
    if documents is None and (include or exclude or base_url):
        raise typer.BadParameter("--include, --exclude and --base-url need --documents")
    threads = threads or cores()
    plan = BuildPlan(
        source=passages or documents or Path(),
        target=out,
        shards=shards,
        threads=threads,
        skip_bad_rows=skip_bad_rows,
        graph=GraphPlan(m, ef_construction, threads),
        cut_documents=cut,
        tenants=tenants,
    )
    chosen_engine = _choose_engine(engine, threads, workers, ray_address)
    with BuildProgress() as progress, contextlib.ExitStack() as converters:
        if documents is not None:
            patterns = FilePatterns(tuple(include or ()), tuple(exclude or ()))
            converter = converters.enter_context(DocumentConverter())
            folder = _scan_folder(documents, patterns, base_url, progress)
            plan = replace(plan, documents=DocumentSource(folder, converter.convert))
        try:
            manifest = build_index(plan, loaded, progress, chosen_engine)
        except ArtefactError:
            _print_skipped(progress.skipped_files, err=True)  # perhaps all files
            raise
        if states:
            compute_states(out, loaded, threads, progress)
    if as_json:
        skipped = {} if documents is None else {"skipped_files": progress.skipped_files}
        print_json({**manifest.model_dump(mode="json"), **skipped})
    else:
        _print_built(out, manifest, loaded, progress.skipped_files)


def _check_source(
    passages: Path | None, documents: Path | None, *, cut: bool, tenants: bool
) -> None:
    """Raises BadParameter unless there is one source, which the other options fit."""
    if (passages is None) == (documents is None):
        raise typer.BadParameter("give either --passages or --documents")
    if documents is not None and tenants:
        raise typer.BadParameter(
            "a folder of documents has no tenants: feed it with `winnow sync --tenant`",
            param_hint="--tenants",
        )
    if documents is not None and cut:
        raise typer.BadParameter("--documents always cuts: omit --cut", param_hint="--cut")


def _print_built(
    out: Path, manifest: IndexManifest, bundle: Bundle, skipped: Sequence[SkippedFile]
) -> None:
    """Prints the contents of a new index, and what was left out or truncated."""
    _print_skipped(skipped)
    contents = f"{many(manifest.passages, 'passage')} in {many(manifest.shards, 'shard')}"
    typer.echo(f"{out}: {contents}")
    if manifest.bad_rows:
        typer.echo(f"left out: {many(manifest.bad_rows, 'bad row')}")
    if manifest.truncated_passages:
        max_tokens = bundle.manifest.encoder.max_passage_tokens
        typer.echo(
            f"{many(manifest.truncated_passages, 'passage')} of more than {max_tokens} tokens: "
            f"they are retrieved by their first {max_tokens} tokens, and read completely"
        )


def _print_skipped(skipped: Sequence[SkippedFile], *, err: bool = False) -> None:
    for each in skipped:
        what = "incomplete" if each.is_indexed else "skipped"
        typer.echo(f"{what}: {printable(each.name)}: {printable(each.reason)}", err=err)


def _scan_folder(
    folder: Path, patterns: FilePatterns, base_url: str, progress: BuildProgress
) -> ScannedFolder:
    """Lists the documents of a folder and reads their checksums."""
    listing = list_files(folder, patterns, is_supported)
    progress.start("checking files", len(listing.files))
    scanned = FolderScanner(base_url).scan(listing, progress.advance)
    for each in scanned.skipped:
        progress.skipped_file(each)
    return scanned


def compute_states(out: Path, bundle: Bundle, threads: int, progress: BuildProgress) -> None:
    """Computes the states of a new index; prints how to resume if that fails."""
    try:
        write_states(out, bundle, threads, progress)
    except BaseException:  # including Ctrl-C
        resume = states_command(out, bundle.directory)
        progress.say(f"{out} is complete except for its states: resume with {resume}")
        raise


def _choose_engine(name: EngineName, threads: int, workers: int | None, ray_address: str) -> Engine:
    if name is EngineName.RAY:
        return RayEngine(workers, ray_address)
    if workers is not None or ray_address:
        flag = "--ray-address" if workers is None else "--workers"
        raise typer.BadParameter(f"{flag} needs --engine ray")
    return LocalEngine(threads)


@app.command(name="states")
def add_states(
    directory: _ShardDirectory,
    bundle: _Bundle = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, max=1024, help="Threads that compute states.", show_default="all cores"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Precompute the reader states of every passage of an index, or of one shard.

    Writes states.bin beside every shard, about 31 KB a passage. Run the same command again to
    resume after an interruption. Nodes use the states after a restart. Answers are the same with or
    without states.
    """
    _add_data(READER_STATES, directory, bundle, threads, as_json)


@app.command()
def token_vectors(
    directory: _ShardDirectory,
    bundle: _Bundle = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, max=1024, help="Threads that compute token vectors.", show_default="all cores"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute the token vectors of every passage of an index, or of one shard.

    They are for late interaction, which ranks passages better. The bundle must have late
    interaction. Writes token-vectors.bin beside every shard, 4 to 5 KB a passage. Run the same
    command again to resume after an interruption. Nodes use token vectors after a restart, once all
    shards have them.
    """
    _add_data(TOKEN_VECTORS, directory, bundle, threads, as_json)


def _add_data(
    kind: StatesKind, directory: Path, bundle: Path | None, threads: int | None, as_json: bool
) -> None:
    loaded = load_bundle(bundle or default_bundle())
    with BuildProgress() as progress:
        try:
            shards = write_states(directory, loaded, threads or cores(), progress, kind)
        except KeyboardInterrupt:
            progress.say(
                f"computed {kind.noun} are kept: resume with "
                f"{states_command(directory, loaded.directory, kind)}"
            )
            raise
    if as_json:
        print_json(shards)
        return
    size = sum(each.bytes for each in shards) / 1e6
    typer.echo(f"{directory}: {kind.noun} of {many(len(shards), 'shard')}, {size:,.1f} MB")


@app.command()
def inspect(directory: _Directory, as_json: AsJson = False) -> None:
    """Show the shards of an index, its writes, states and token vectors, without checking them."""
    index = read_index_manifest(directory)
    directories = present_shards(directory, index.shards)
    shards = list(map(read_current_shard, directories))
    if as_json:
        manifests = [read_shard_manifest(each) for each in directories]
        content = index.model_dump(mode="json")
        print_json(
            {**content, "shard_manifests": manifests, "writes": list(map(_state_of_writes, shards))}
        )
        return
    passages = sum(shard.manifest.passages for shard in shards)
    merged = " merged" if any(shard.unmerged for shard in shards) else ""
    typer.echo(
        f"index {index.index_id} from {index.source}: {many(passages, 'passage')}{merged}, "
        f"{many(len(shards), 'shard')}, {index.dimension} dimensions"
    )
    typer.echo(f"encoded by {index.bundle_name} ({index.encoding_fingerprint})")
    columns = ("shard", "passages", "M", "ef_construction", "MB", "token vectors MB", "states MB")
    console().print(table(columns, map(_shard_row, shards)))
    for reader in sorted({shard.states.fingerprint for shard in shards if shard.states}):
        typer.echo(f"states are of {reader_name(reader)}")
    for shard in shards:
        if shard.state is not None:
            typer.echo(
                f"shard {shard.manifest.shard}: {many(shard.sequence, 'write')}, {shard.unmerged} "
                f"of them unmerged; generation {shard.generation}, log {shard.log_id}"
            )


@app.command()
def verify(
    directory: _Directory,
    sample: Annotated[
        int, typer.Option(min=1, help="Number of vectors to search for in each shard.")
    ] = 200,
    min_recall: Annotated[
        float, typer.Option(min=0, max=1, help=f"Lowest recall@{K} that passes, 0 to 1.")
    ] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Check checksums, counts, vectors, logs and the recall of every graph; exit 1 on any fault.

    The command also checks precomputed states and token vectors. Nodes may serve the index and
    write to it meanwhile.
    """
    reports = verify_index(directory, sample, min_recall)
    faulty = any(report.faults for report in reports)
    if as_json:
        print_json({"ok": not faulty, "shards": reports})
    else:
        for report in reports:
            typer.echo(
                f"shard {report.shard}: {'; '.join(report.faults) or _shard_summary(report)}"
            )
        typer.echo("faults found" if faulty else "ok")
    raise typer.Exit(1 if faulty else 0)


def _shard_summary(report: ShardReport) -> str:
    """Summarises the report of a shard without faults."""
    summary = f"{many(report.passages, 'passage')}: recall@{K} {report.recall:.4f}"
    if report.sequence:
        summary += f"; {many(report.sequence, 'write')}, {report.unmerged} of them unmerged"
    if report.states_of:
        summary += f"; states checked, of {reader_name(report.states_of)}"
    return summary


def _shard_row(shard: CurrentShard) -> tuple[str, ...]:
    manifest = shard.manifest
    size = sum(entry.bytes for entry in manifest.files.values()) / 1e6
    return (
        str(manifest.shard),
        f"{manifest.passages:,}",
        str(manifest.m) if manifest.graph else "none",
        str(manifest.ef_construction) if manifest.graph else "none",
        f"{size:,.1f}",
        *(_states_size(shard, kind, shard.data(kind)) for kind in (TOKEN_VECTORS, READER_STATES)),
    )


def _states_size(shard: CurrentShard, kind: StatesKind, found: StatesManifest | None) -> str:
    """Returns the megabytes of a shard's data of a kind, or why there are none."""
    if found is not None:
        size = f"{found.bytes / 1e6:,.1f}"
        complete, passages = shard.passages_with(kind), shard.manifest.passages
        return f"{size} ({complete:,} of {passages:,})" if complete < passages else size
    if (shard.base / kind.manifest).exists():
        return "unusable"
    return "begun" if any(shard.base.glob(kind.partial)) else "none"


def _state_of_writes(shard: CurrentShard) -> dict[str, object]:
    """Returns the JSON of a shard's writes, and of the data that was computed after them."""
    return {
        "sequence": shard.sequence,
        "unmerged": shard.unmerged,
        "generation": shard.generation,
        "log_id": shard.log_id,
        "states": shard.states,
        "token_vectors": shard.data(TOKEN_VECTORS),
    }
