"""What tasks tell OpenLineage; imported only when OpenLineage asks for it.

Names are as in OpenLineage's "Naming Conventions": files by their store and path; tables by the
connection that stands for their catalog, as assets are named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_merge.assets import dataset_name, table_asset
from airflow_provider_merge.hooks.catalog import catalog_hook
from airflow_provider_merge.lineage.columns import (
    TARGET,
    Input,
    Relations,
    file_columns,
    written_columns,
)
from airflow_provider_merge.table_names import quoted_name
from spark_jobs.contract.alter_table import AlterTableSpec
from spark_jobs.contract.compaction import CompactSpec
from spark_jobs.contract.drop_table import DropTableSpec
from spark_jobs.contract.inserts import InsertOverwriteSpec, TruncateTableSpec
from spark_jobs.contract.maintenance import MaintenanceStatement
from spark_jobs.contract.request import FileSource, Source, TableName, TableSource
from spark_jobs.contract.result import JobResult
from spark_jobs.contract.s3_options import SCHEMES as S3_SCHEMES
from spark_jobs.contract.statements import CreateTableSpec, Statement
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_merge.operators._shared.table_operator import TableOperator


# Stores whose paths are keys, without a slash in front.
_KEYS = {**dict.fromkeys(S3_SCHEMES, "s3"), "gs": "gs", "oss": "oss"}
# Name → type, of a table.
Schema = Mapping[str, str]


@dataclass(frozen=True, slots=True, order=True)
class DatasetName:
    """Namespace and name of a dataset."""

    namespace: str
    name: str


def _of_table(catalog_conn_id: str, table: TableName) -> DatasetName:
    """The dataset of a table, the same as that of its asset."""
    return DatasetName(*dataset_name(table_asset(catalog_conn_id, quoted_name(table)).uri))


def _of_source(catalog_conn_id: str, source: Source) -> DatasetName | None:
    """The dataset that a source reads; None for a query, whose sources are others."""
    if isinstance(source, TableSource):
        return _of_table(source.connection or catalog_conn_id, source.table)
    return of_files(source.path) if isinstance(source, FileSource) else None


def of_files(path: str) -> DatasetName | None:
    """The dataset of files; None for what is no absolute path and no URI."""
    if path.startswith("/"):
        return DatasetName("file", path)
    scheme, separator, rest = path.partition("://")
    scheme = scheme.lower()
    if not separator:
        return DatasetName("file", path[5:]) if path.startswith("file:/") else None
    if scheme == "file":
        return DatasetName("file", f"/{rest.lstrip('/')}")
    parts = urlsplit(f"x://{rest}", allow_fragments=False)
    if scheme in _KEYS:
        return DatasetName(f"{_KEYS[scheme]}://{parts.netloc}", rest.partition("/")[2])
    return DatasetName(f"{scheme}://{parts.netloc}", f"/{rest.partition('/')[2]}")


@dataclass(frozen=True)
class TaskFacts:
    """A statement of rendered parameters; ``text`` where it was given as such.

    ``columns`` reads the schema of a table.
    """

    catalog_conn_id: str
    target: TableName
    statement: Statement
    sources: Sequence[Source]
    columns: Callable[[TableName], Schema]
    is_dry_run: bool = False
    text: str | None = None

    def lineage(self, result: JobResult | None = None) -> OperatorLineage[Any, Any]:
        """What the task reads and writes; with its result also columns, counts, the snapshot."""
        from airflow.providers.common.compat.openlineage.facet import SQLJobFacet
        from airflow.providers.openlineage.extractors import OperatorLineage

        return OperatorLineage(
            inputs=_inputs(self.catalog_conn_id, self.sources),
            outputs=[] if self.is_dry_run else [self._output(result)],
            job_facets={"sql": SQLJobFacet(query=self.text)} if self.text else {},
        )

    def _output(self, result: JobResult | None) -> Any:
        from openlineage.client.event_v2 import OutputDataset

        name = _of_table(self.catalog_conn_id, self.target)
        if result is None:
            return OutputDataset(namespace=name.namespace, name=name.name)
        schema = self._schema(self.target)
        facets = {**_version(result), **_schema_facet(schema), **_life(self.statement, result)}
        facets |= self._column_lineage(schema)
        return OutputDataset(
            namespace=name.namespace,
            name=name.name,
            facets=facets,
            outputFacets=_statistics(self.statement, result),
        )

    def _schema(self, table: TableName) -> Schema:
        """The columns of a table; none where they cannot be read, which is no failure here."""
        try:
            return self.columns(table)
        except (JobError, OSError):
            return {}

    def _column_lineage(self, schema: Schema) -> dict[str, Any]:
        from airflow.providers.common.compat.openlineage.facet import (
            ColumnLineageDatasetFacet,
            Fields,
        )

        known = {each.name: self._source_columns(each) for each in self.sources}
        columns = {name: found for name, found in known.items() if found}
        if schema:
            columns[TARGET] = list(schema)
        written = written_columns(self.statement, Relations(self.sources, columns))
        fields = {
            column: Fields(inputFields=[self._field(each) for each in sorted(inputs)])
            for column, inputs in written.items()
            if all(self._dataset_of(view) for view, _ in inputs)
        }
        return {"columnLineage": ColumnLineageDatasetFacet(fields=fields)} if fields else {}

    def _source_columns(self, source: Source) -> list[str] | None:
        if isinstance(source, TableSource):
            return None if source.connection else list(self._schema(source.table))
        return file_columns(source)

    def _field(self, each: Input) -> Any:
        from airflow.providers.common.compat.openlineage.facet import InputField

        view, column = each
        name = self._dataset_of(view)
        assert name is not None  # noqa: S101 - its caller has left others out
        return InputField(namespace=name.namespace, name=name.name, field=column)

    def _dataset_of(self, view: str) -> DatasetName | None:
        if view == TARGET:
            return _of_table(self.catalog_conn_id, self.target)
        source = next(each for each in self.sources if each.name == view)
        return _of_source(self.catalog_conn_id, source)


def task_lineage(
    operator: TableOperator, result: JobResult | None
) -> OperatorLineage[Any, Any] | None:
    """What a task tells, from its rendered parameters; nothing where rows stay the same."""
    statement = operator.statement()
    if isinstance(statement, MaintenanceStatement | CompactSpec):
        return None
    facts = TaskFacts(
        catalog_conn_id=operator.catalog_conn_id,
        target=operator.target_table(),
        statement=statement,
        sources=operator.request_sources(),
        columns=lambda table: catalog_hook(operator.catalog_conn_id).definition(table).columns,
        is_dry_run=operator.is_dry_run(),
        text=operator.statement_text(),
    )
    return facts.lineage(result)


def query_lineage(
    catalog_conn_id: str, sources: Sequence[Source], text: str
) -> OperatorLineage[Any, Any]:
    """What a query reads."""
    from airflow.providers.common.compat.openlineage.facet import SQLJobFacet
    from airflow.providers.openlineage.extractors import OperatorLineage

    return OperatorLineage(
        inputs=_inputs(catalog_conn_id, sources), job_facets={"sql": SQLJobFacet(query=text)}
    )


def batch_lineage(
    operators: Mapping[str, TableOperator], results: Mapping[str, JobResult]
) -> OperatorLineage[Any, Any]:
    """What the statements of a task tell, in their order; ``results`` by the same names."""
    from airflow.providers.common.compat.openlineage.facet import SQLJobFacet
    from airflow.providers.openlineage.extractors import OperatorLineage

    told = [task_lineage(each, results.get(name)) for name, each in operators.items()]
    lineages = [each for each in told if each is not None]
    inputs = {(each.namespace, each.name): each for one in lineages for each in one.inputs}
    texts = [each.statement_text() for each in operators.values()]
    query = ";\n".join(text for text in texts if text)
    return OperatorLineage(
        inputs=[inputs[key] for key in sorted(inputs)],
        outputs=[each for one in lineages for each in one.outputs],
        job_facets={"sql": SQLJobFacet(query=query)} if query else {},
    )


def _inputs(catalog_conn_id: str, sources: Sequence[Source]) -> list[Any]:
    states: dict[DatasetName, set[str]] = {}
    for source in sources:
        name = _of_source(catalog_conn_id, source)
        if name is not None:
            states.setdefault(name, set()).add(_state(source))
    return [_dataset(name, states[name]) for name in sorted(states)]


def _state(source: Source) -> str:
    """The former state that a source names; empty: none."""
    if not isinstance(source, TableSource) or source.at is None:
        return ""
    return str(source.at) if source.at.snapshot is None else str(source.at.snapshot)


def _dataset(name: DatasetName, states: Collection[str]) -> Any:
    from openlineage.client.event_v2 import InputDataset

    (state,) = states if len(states) == 1 else ("",)
    facets = _version_facet(state) if state else {}
    return InputDataset(namespace=name.namespace, name=name.name, facets=facets)


def _version(result: JobResult) -> dict[str, Any]:
    return {} if result.new_snapshot_id is None else _version_facet(str(result.new_snapshot_id))


def _version_facet(version: str) -> dict[str, Any]:
    from openlineage.client.facet_v2 import dataset_version_dataset

    return {"version": dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=version)}


def _schema_facet(schema: Schema) -> dict[str, Any]:
    from airflow.providers.common.compat.openlineage.facet import (
        SchemaDatasetFacet,
        SchemaDatasetFacetFields,
    )

    fields = [SchemaDatasetFacetFields(name=name, type=kind) for name, kind in schema.items()]
    return {"schema": SchemaDatasetFacet(fields=fields)} if fields else {}


def _life(statement: Statement, result: JobResult) -> dict[str, Any]:
    """That the whole table was made, altered, replaced or emptied."""
    from airflow.providers.common.compat.openlineage.facet import (
        LifecycleStateChange,
        LifecycleStateChangeDatasetFacet,
    )

    if result.status != "committed":
        return {}
    if isinstance(statement, CreateTableSpec):
        change = LifecycleStateChange.CREATE
    elif isinstance(statement, DropTableSpec):
        change = LifecycleStateChange.DROP
    elif isinstance(statement, AlterTableSpec):
        change = LifecycleStateChange.ALTER
    elif isinstance(statement, InsertOverwriteSpec) and statement.mode == "table":
        change = LifecycleStateChange.OVERWRITE
    elif isinstance(statement, TruncateTableSpec) and not statement.partition:
        change = LifecycleStateChange.TRUNCATE
    else:
        return {}
    return {"lifecycleStateChange": LifecycleStateChangeDatasetFacet(lifecycleStateChange=change)}


def _statistics(statement: Statement, result: JobResult) -> dict[str, Any]:
    """Rows that the statement wrote, not those that were only carried into new files."""
    from airflow.providers.common.compat.openlineage.facet import OutputStatisticsOutputDatasetFacet

    if isinstance(statement, CreateTableSpec | AlterTableSpec | DropTableSpec):
        return {}
    metrics = result.metrics
    statistics = OutputStatisticsOutputDatasetFacet(
        rowCount=metrics.inserted + metrics.updated,
        size=metrics.bytes_added,
        fileCount=metrics.files_added,
    )
    return {"outputStatistics": statistics}
