import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.paimon.Snapshot;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.append.dataevolution.DataEvolutionCompactCoordinator;
import org.apache.paimon.append.dataevolution.DataEvolutionCompactTask;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.index.BucketAssigner;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.index.IndexFileHandler;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.index.SimpleHashBucketAssigner;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.BucketEntry;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.SpecialFields;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.RowPartitionKeyExtractor;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeJsonParser;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;

/**
 * Paimon's own writer: carries out requests, one JSON document per line, on
 * standard input. Each has "warehouse" and "table", and all but "create" may have "branch".
 *
 * <pre>
 * {"mode": "create", "fields": [["id", "BIGINT"]], "partition_keys": [],
 *  "primary_keys": [], "options": {}}
 * {"mode": "alter", "changes": [["add", ["n"], "INT"], ["rename", ["s", "x"], "y"]]}
 * {"mode": "append", "rows": [[1], [2]], "kinds": ["+I", "-D"], "bucket": 0, "overwrite": true,
 *  "user": "u"}
 * {"mode": "delete", "column": "id", "values": [1]}
 * {"mode": "columns", "columns": ["a"], "first": 0, "rows": [[1], [2]]}
 * {"mode": "branch", "name": "b", "tag": "start"}
 * {"mode": "forward", "name": "b"}
 * {"mode": "drop_branch", "name": "b"}
 * {"mode": "compact", "full": true, "buckets": [0]}
 * {"mode": "expire", "keeps_changelogs": true}
 * {"mode": "rollback", "snapshot": 1}
 * </pre>
 *
 * "append" and "delete" make one commit each, "delete" by deletion vectors; "append" may have a kind
 * for each row, and a bucket for all where the writer does not choose it, and takes the place of all
 * rows if it is to "overwrite", and the name of its commit user begins with "user"; "columns" commits
 * new values of some columns of all rows of a range, which begins at the row id "first"; "branch" tags the latest
 * snapshot first; "compact" is what Paimon's compaction job does, to each bucket where there are any
 * or to those in "buckets" (of all partitions), as a whole unless "full" is false; "expire" leaves
 * the latest snapshot only, and the changelogs of others for a day if it "keeps_changelogs". Types and values have the form of ReadPaimon. The answer is
 * {"end": true} or {"error": "..."}.
 */
public final class WritePaimon {
    private static final ObjectMapper JSON = new ObjectMapper();

    private WritePaimon() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err); // whatever a library prints is no answer
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> answer = Collections.singletonMap("end", true);
            try {
                carryOut(JSON.readTree(line));
            } catch (Throwable problem) {
                problem.printStackTrace();
                answer = Collections.singletonMap("error", problem.toString());
            }
            out.println(JSON.writeValueAsString(answer));
            out.flush();
        }
    }

    private static void carryOut(JsonNode request) throws Exception {
        Options options = new Options();
        String warehouse = request.get("warehouse").asText();
        boolean isLocal = warehouse.startsWith("/");
        options.set("warehouse", isLocal ? "file:" + warehouse : warehouse);
        options.set("cache-enabled", "false");
        CatalogContext context =
                CatalogContext.create(options, isLocal ? new LinkingFileIO.Loader() : null, null);
        try (Catalog catalog = CatalogFactory.createCatalog(context)) {
            Identifier name = Identifier.fromString(request.get("table").asText());
            String mode = request.get("mode").asText();
            if (mode.equals("create")) {
                catalog.createDatabase(name.getDatabaseName(), true);
                catalog.createTable(name, schema(request), false);
                return;
            }
            if (request.hasNonNull("branch")) {
                String branch = request.get("branch").asText();
                name = new Identifier(name.getDatabaseName(), name.getTableName(), branch);
            }
            if (mode.equals("alter")) {
                List<SchemaChange> changes = new ArrayList<>();
                request.get("changes").forEach(change -> changes.add(schemaChange(change)));
                catalog.alterTable(name, changes, false);
                return;
            }
            FileStoreTable table = (FileStoreTable) catalog.getTable(name);
            switch (mode) {
                case "append":
                    append(table, request);
                    return;
                case "delete":
                    delete(table, request.get("column").asText(), request.get("values"));
                    return;
                case "branch":
                    table.createTag(request.get("tag").asText());
                    table.createBranch(request.get("name").asText(), request.get("tag").asText());
                    return;
                case "forward":
                    table.fastForward(request.get("name").asText());
                    return;
                case "drop_branch":
                    table.deleteBranch(request.get("name").asText());
                    return;
                case "columns":
                    columns(table, request);
                    return;
                case "compact":
                    compact(table, request);
                    return;
                case "expire":
                    expire(table, request.path("keeps_changelogs").asBoolean(false));
                    return;
                case "rollback":
                    table.rollbackTo(request.get("snapshot").asLong());
                    return;
                default:
                    throw new IllegalArgumentException("no mode " + mode);
            }
        }
    }

    private static SchemaChange schemaChange(JsonNode change) {
        List<String> names = new ArrayList<>();
        change.get(1).forEach(name -> names.add(name.asText()));
        String[] path = names.toArray(new String[0]);
        JsonNode argument = change.get(2);
        switch (change.get(0).asText()) {
            case "add":
                DataType added = DataTypeJsonParser.parseDataType(argument);
                return SchemaChange.addColumn(path, added, null, null);
            case "rename":
                return SchemaChange.renameColumn(path, argument.asText());
            case "drop":
                return SchemaChange.dropColumn(path);
            case "type":
                DataType type = DataTypeJsonParser.parseDataType(argument);
                return SchemaChange.updateColumnType(path, type, true);
            case "nullable":
                return SchemaChange.updateColumnNullability(path, argument.asBoolean());
            case "comment":
                return SchemaChange.updateColumnComment(path, argument.asText());
            case "default":
                return SchemaChange.updateColumnDefaultValue(path, argument.asText());
            case "option":
                return SchemaChange.setOption(path[0], argument.asText());
            case "first":
                return SchemaChange.updateColumnPosition(SchemaChange.Move.first(path[0]));
            default:
                throw new IllegalArgumentException("no change " + change);
        }
    }

    private static Schema schema(JsonNode request) {
        Schema.Builder schema = Schema.newBuilder();
        for (JsonNode field : request.get("fields")) {
            schema.column(field.get(0).asText(), DataTypeJsonParser.parseDataType(field.get(1)));
        }
        List<String> keys = new ArrayList<>();
        request.get("partition_keys").forEach(key -> keys.add(key.asText()));
        schema.partitionKeys(keys);
        List<String> primary = new ArrayList<>();
        request.path("primary_keys").forEach(key -> primary.add(key.asText()));
        schema.primaryKey(primary);
        request.get("options")
                .fields()
                .forEachRemaining(each -> schema.option(each.getKey(), each.getValue().asText()));
        return schema.build();
    }

    private static void append(FileStoreTable found, JsonNode request) throws Exception {
        FileStoreTable table = found;
        if (request.hasNonNull("user")) {
            String user = request.get("user").asText();
            table = found.copy(Collections.singletonMap("commit.user-prefix", user));
        }
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        if (request.path("overwrite").asBoolean(false)) {
            builder.withOverwrite();
        }
        try (IOManager disk = disk();
                BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit()) {
            write.withIOManager(disk);
            JsonNode rows = request.get("rows");
            BucketAssigner assigner = assigner(table, request.path("overwrite").asBoolean(false));
            RowPartitionKeyExtractor keys = new RowPartitionKeyExtractor(table.schema());
            for (int i = 0; i < rows.size(); i++) {
                GenericRow row = struct(rows.get(i), table.rowType());
                if (request.hasNonNull("kinds")) {
                    String kind = request.get("kinds").get(i).asText();
                    row.setRowKind(RowKind.fromShortString(kind));
                }
                if (request.hasNonNull("bucket")) {
                    write.write(row, request.get("bucket").asInt());
                } else if (assigner != null) {
                    int hash = keys.trimmedPrimaryKey(row).hashCode();
                    write.write(row, assigner.assign(keys.partition(row), hash));
                } else {
                    write.write(row);
                }
            }
            commit.commit(write.prepareCommit());
        }
    }

    private static void columns(FileStoreTable table, JsonNode request) throws Exception {
        List<String> names = new ArrayList<>();
        request.get("columns").forEach(name -> names.add(name.asText()));
        RowType type = table.rowType().project(names);
        long first = request.get("first").asLong();
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        try (BatchTableWrite write = builder.newWrite().withWriteType(type);
                BatchTableCommit commit = builder.newCommit()) {
            for (JsonNode row : request.get("rows")) {
                write.write(struct(row, type));
            }
            List<CommitMessage> messages = write.prepareCommit();
            for (CommitMessage message : messages) {
                List<DataFileMeta> files = ((CommitMessageImpl) message).newFilesIncrement().newFiles();
                files.replaceAll(file -> file.assignFirstRowId(first));
            }
            commit.commit(messages);
        }
    }

    /** Chooses dynamic buckets; null if the table has none. */
    private static BucketAssigner assigner(FileStoreTable table, boolean overwrites) {
        if (table.bucketMode() != BucketMode.HASH_DYNAMIC) {
            return null;
        }
        long target = table.coreOptions().dynamicBucketTargetRowNum();
        int most = table.coreOptions().dynamicBucketMaxBuckets();
        if (overwrites) {
            return new SimpleHashBucketAssigner(1, 0, target, most);
        }
        return new HashBucketAssigner(
                table.snapshotManager(),
                "judge",
                table.store().newIndexFileHandler(),
                1,
                1,
                0,
                target,
                most);
    }

    private static IOManager disk() {
        return IOManager.create(System.getProperty("java.io.tmpdir"));
    }

    /** Marks the rows that have one of the values as deleted, in the vectors of their files. */
    private static void delete(FileStoreTable table, String column, JsonNode values)
            throws Exception {
        int index = table.rowType().getFieldIndex(column);
        InternalRow.FieldGetter getter =
                InternalRow.createFieldGetter(table.rowType().getTypeAt(index), index);
        Set<Object> wanted = new HashSet<>();
        values.forEach(each -> wanted.add(value(each, table.rowType().getTypeAt(index))));
        Snapshot snapshot = table.snapshotManager().latestSnapshot();
        IndexFileHandler indexes = table.store().newIndexFileHandler();
        boolean bucketed = table.bucketMode() != BucketMode.BUCKET_UNAWARE;
        Map<List<Object>, BaseAppendDeleteFileMaintainer> maintainers = new LinkedHashMap<>();
        for (DataSplit split : table.newSnapshotReader().withSnapshot(snapshot).read().dataSplits()) {
            BaseAppendDeleteFileMaintainer maintainer =
                    maintainers.computeIfAbsent(
                            List.of(split.partition(), split.bucket()),
                            key ->
                                    bucketed
                                            ? BaseAppendDeleteFileMaintainer.forBucketedAppend(
                                                    indexes,
                                                    snapshot,
                                                    split.partition(),
                                                    split.bucket())
                                            : BaseAppendDeleteFileMaintainer.forUnawareAppend(
                                                    indexes, snapshot, split.partition()));
            for (DataFileMeta file : split.dataFiles()) {
                DeletionVector vector = new BitmapDeletionVector();
                long position = 0;
                try (RecordReader<InternalRow> reader =
                        table.newRead().createReader(whole(split, file))) {
                    for (RecordReader.RecordIterator<InternalRow> batch = reader.readBatch();
                            batch != null;
                            batch = reader.readBatch()) {
                        for (InternalRow row = batch.next(); row != null; row = batch.next()) {
                            if (wanted.contains(getter.getFieldOrNull(row))) {
                                vector.delete(position);
                            }
                            position++;
                        }
                        batch.releaseBatch();
                    }
                }
                if (!vector.isEmpty()) {
                    maintainer.notifyNewDeletionVector(file.fileName(), vector);
                }
            }
        }
        List<CommitMessage> messages = new ArrayList<>();
        for (BaseAppendDeleteFileMaintainer maintainer : maintainers.values()) {
            messages.add(message(table, maintainer));
        }
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
            commit.commit(messages);
        }
    }

    /** All rows of one file, without its deletion vector. */
    private static DataSplit whole(DataSplit split, DataFileMeta file) {
        return DataSplit.builder()
                .withSnapshot(split.snapshotId())
                .withPartition(split.partition())
                .withBucket(split.bucket())
                .withBucketPath(split.bucketPath())
                .withTotalBuckets(split.totalBuckets())
                .withDataFiles(List.of(file))
                .rawConvertible(true)
                .build();
    }

    private static CommitMessage message(
            FileStoreTable table, BaseAppendDeleteFileMaintainer maintainer) {
        List<IndexFileMeta> added = new ArrayList<>();
        List<IndexFileMeta> removed = new ArrayList<>();
        for (IndexManifestEntry entry : maintainer.persist()) {
            (entry.kind() == FileKind.ADD ? added : removed).add(entry.indexFile());
        }
        return new CommitMessageImpl(
                maintainer.getPartition(),
                maintainer.getBucket(),
                table.coreOptions().bucket(),
                new DataIncrement(List.of(), List.of(), List.of(), added, removed),
                CompactIncrement.emptyIncrement());
    }

    private static void compact(FileStoreTable table, JsonNode request) throws Exception {
        if (table.bucketMode() != BucketMode.BUCKET_UNAWARE) {
            compactBuckets(table, request);
            return;
        }
        List<CommitMessage> messages = new ArrayList<>();
        if (table.coreOptions().dataEvolutionEnabled()) {
            try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
                for (DataEvolutionCompactTask task :
                        new DataEvolutionCompactCoordinator(table, false, false).plan()) {
                    messages.add(task.doCompact(table, "compaction"));
                }
                commit.commit(messages);
            }
            return;
        }
        BaseAppendFileStoreWrite write =
                (BaseAppendFileStoreWrite) table.store().newWrite("compaction");
        if (table.coreOptions().rowTrackingEnabled()) {
            write.withWriteType(SpecialFields.rowTypeWithRowTracking(table.rowType()));
        }
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
            for (AppendCompactTask task : new AppendCompactCoordinator(table, false).run()) {
                messages.add(task.doCompact(table, write));
            }
            commit.commit(messages);
        } finally {
            write.close();
        }
    }

    /** By the writer: a table of writers that leave it to a job says so. */
    private static void compactBuckets(FileStoreTable table, JsonNode request) throws Exception {
        boolean full = request.path("full").asBoolean(true);
        Set<Integer> wanted = new HashSet<>();
        request.path("buckets").forEach(bucket -> wanted.add(bucket.asInt()));
        BatchWriteBuilder builder =
                table.copy(Collections.singletonMap("write-only", "false")).newBatchWriteBuilder();
        try (IOManager disk = disk();
                BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit()) {
            write.withIOManager(disk);
            for (BucketEntry each : table.newSnapshotReader().bucketEntries()) {
                if (wanted.isEmpty() || wanted.contains(each.bucket())) {
                    write.compact(each.partition(), each.bucket(), full);
                }
            }
            commit.commit(write.prepareCommit());
        }
    }

    private static void expire(FileStoreTable table, boolean keepsChangelogs) throws Exception {
        ExpireConfig.Builder config =
                ExpireConfig.builder()
                        .snapshotRetainMin(1)
                        .snapshotRetainMax(1)
                        .snapshotTimeRetain(Duration.ZERO);
        if (keepsChangelogs) {
            config.changelogRetainMax(Integer.MAX_VALUE).changelogTimeRetain(Duration.ofDays(1));
        }
        table.newExpireSnapshots().config(config.build()).expire();
    }

    private static GenericRow struct(JsonNode values, RowType type) {
        GenericRow row = new GenericRow(type.getFieldCount());
        for (int i = 0; i < type.getFieldCount(); i++) {
            row.setField(i, value(values.get(i), type.getTypeAt(i)));
        }
        return row;
    }

    private static Object value(JsonNode value, DataType type) {
        if (value.isNull()) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return value.asBoolean();
            case TINYINT:
                return (byte) value.asInt();
            case SMALLINT:
                return (short) value.asInt();
            case INTEGER:
            case DATE:
            case TIME_WITHOUT_TIME_ZONE:
                return value.asInt();
            case BIGINT:
                return value.asLong();
            case FLOAT:
                return Float.valueOf(value.asText());
            case DOUBLE:
                return Double.valueOf(value.asText());
            case CHAR:
            case VARCHAR:
                return BinaryString.fromString(value.asText());
            case DECIMAL:
                DecimalType kind = (DecimalType) type;
                BigDecimal number = new BigDecimal(value.asText());
                return Decimal.fromBigDecimal(number, kind.getPrecision(), kind.getScale());
            case BINARY:
            case VARBINARY:
                return Base64.getDecoder().decode(value.asText());
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return Timestamp.fromEpochMillis(value.get(0).asLong(), value.get(1).asInt());
            case ARRAY:
                DataType element = ((ArrayType) type).getElementType();
                List<Object> elements = new ArrayList<>();
                value.forEach(each -> elements.add(value(each, element)));
                return new GenericArray(elements.toArray());
            case MAP:
                MapType map = (MapType) type;
                Map<Object, Object> pairs = new LinkedHashMap<>();
                value.forEach(
                        pair ->
                                pairs.put(
                                        value(pair.get(0), map.getKeyType()),
                                        value(pair.get(1), map.getValueType())));
                return new GenericMap(pairs);
            case ROW:
                return struct(value, (RowType) type);
            default:
                throw new IllegalArgumentException("no values of type " + type);
        }
    }
}
