import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.Snapshot;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.PartitionEntry;
import org.apache.paimon.options.Options;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.stats.SimpleStats;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.StreamTableScan;
import org.apache.paimon.table.system.RowTrackingTable;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeRoot;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.JsonSerdeUtil;

/**
 * Paimon's own reader as a judge: answers requests, one JSON document per line, on standard input.
 *
 * <pre>
 * {"mode": "rows",  "warehouse": "/w", "table": "db.t", "snapshot": 3, "branch": "b",
 *  "where": {"column": "id", "value": 5}, "tracked": true}
 * {"mode": "changelog", "warehouse": "/w", "table": "db.t", "from": 1}
 * {"mode": "facts", "warehouse": "/w", "table": "db.t"}
 * {"mode": "buckets", "warehouse": "/w", "table": "db.t"}
 * {"mode": "types"}
 * </pre>
 *
 * "rows" answers {"field": ...} per column, {"row": [...]} per row and {"end": true}; "changelog"
 * answers the same with a "kind" ("+I", "-U", "+U", "-D") per row, for what a stream sees of the
 * snapshots "from" one to the latest, in its order; "facts" answers
 * one {"facts": {...}} and {"end": true}; "buckets" answers {"row": [...], "is": 1, "belongs": 2}
 * per row, with the bucket in which it is and the one where Java's writer would put it; "types" answers
 * {"types": [...]}, the names of all types' roots; a failure answers {"error": "..."}. "snapshot", "branch" and
 * "where" may be left out; "where" is a filter that the reader may use to skip files, so that wrong
 * column statistics lose rows; rows that do not pass it may still come; "tracked" reads the system
 * table of row ids. With an argument instead of
 * standard input, that argument is the only request.
 *
 * <p>Values: NULL is null, whole numbers are numbers, floats and decimals are strings that are exact,
 * binary is base64, DATE is days and TIME milliseconds, TIMESTAMP is [milliseconds, nanoseconds
 * within], ARRAY is a list, MAP a list of pairs, ROW a list in field order.
 */
public final class ReadPaimon {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final PrintStream out;

    private ReadPaimon(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err); // whatever a library prints is no answer
        ReadPaimon judge = new ReadPaimon(out);
        if (arguments.length > 0) {
            judge.answer(arguments[0]);
            return;
        }
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            judge.answer(line);
        }
    }

    private void answer(String line) throws Exception {
        try {
            JsonNode request = JSON.readTree(line);
            if (request.get("mode").asText().equals("types")) {
                say("types", DataTypeRoot.values());
                say("end", true);
                return;
            }
            Options options = new Options();
            options.set("warehouse", request.get("warehouse").asText());
            options.set("cache-enabled", "false");
            try (Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(options))) {
                FileStoreTable table = table(catalog, request);
                if (request.get("mode").asText().equals("facts")) {
                    say("facts", facts(table));
                } else if (request.get("mode").asText().equals("buckets")) {
                    buckets(table);
                } else if (request.get("mode").asText().equals("changelog")) {
                    changelog(table, request.get("from").asText());
                } else {
                    boolean tracked = request.path("tracked").asBoolean();
                    rows(tracked ? new RowTrackingTable(table) : table, request.get("where"));
                }
            }
            say("end", true);
        } catch (Throwable problem) {
            StringBuilder text = new StringBuilder(problem.toString());
            for (Throwable c = problem.getCause(); c != null; c = c.getCause()) {
                text.append("; caused by ").append(c);
            }
            problem.printStackTrace();
            say("error", text.toString());
        }
        out.flush();
    }

    private void say(String key, Object value) throws Exception {
        out.println(JSON.writeValueAsString(java.util.Collections.singletonMap(key, value)));
    }

    private static FileStoreTable table(Catalog catalog, JsonNode request) throws Exception {
        Identifier name = Identifier.fromString(request.get("table").asText());
        if (request.hasNonNull("branch")) {
            String branch = request.get("branch").asText();
            name = new Identifier(name.getDatabaseName(), name.getTableName(), branch);
        }
        FileStoreTable table = (FileStoreTable) catalog.getTable(name);
        if (request.hasNonNull("tag")) {
            return table.copy(Map.of("scan.tag-name", request.get("tag").asText()));
        }
        if (request.hasNonNull("snapshot")) {
            return table.copy(Map.of("scan.snapshot-id", request.get("snapshot").asText()));
        }
        return table;
    }

    private void fields(RowType type) throws Exception {
        for (DataField field : type.getFields()) {
            say("field", JSON.readTree(JsonSerdeUtil.toFlatJson(field)));
        }
    }

    private void changelog(FileStoreTable table, String first) throws Exception {
        RowType type = table.rowType();
        fields(type);
        long latest = table.snapshotManager().latestSnapshotId();
        ReadBuilder builder =
                table.copy(Map.of("scan.mode", "from-snapshot", "scan.snapshot-id", first))
                        .newReadBuilder();
        StreamTableScan scan = builder.newStreamScan();
        while (scan.checkpoint() == null || scan.checkpoint() <= latest) {
            try (RecordReader<InternalRow> reader =
                    builder.newRead().createReader(scan.plan())) {
                reader.forEachRemaining(row -> sayChange(row, type));
            }
        }
    }

    private void sayChange(InternalRow row, RowType type) {
        try {
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("kind", row.getRowKind().shortString());
            answer.put("row", struct(row, type));
            out.println(JSON.writeValueAsString(answer));
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private void rows(Table table, JsonNode where) throws Exception {
        RowType type = table.rowType();
        fields(type);
        ReadBuilder builder = table.newReadBuilder();
        if (where != null && !where.isNull()) {
            builder.withFilter(equal(type, where));
        }
        try (RecordReader<InternalRow> reader =
                builder.newRead().createReader(builder.newScan().plan())) {
            reader.forEachRemaining(
                    row -> {
                        try {
                            say("row", struct(row, type));
                        } catch (Exception error) {
                            throw new IllegalStateException(error);
                        }
                    });
        }
    }

    private void buckets(FileStoreTable table) throws Exception {
        RowType type = table.rowType();
        try (BatchTableWrite writer = table.newBatchWriteBuilder().newWrite()) {
            for (DataSplit split : table.newSnapshotReader().read().dataSplits()) {
                table.newRead()
                        .createReader((Split) split)
                        .forEachRemaining(
                                row -> {
                                    try {
                                        Map<String, Object> answer = new LinkedHashMap<>();
                                        answer.put("row", struct(row, type));
                                        answer.put("is", split.bucket());
                                        answer.put("belongs", writer.getBucket(row));
                                        out.println(JSON.writeValueAsString(answer));
                                    } catch (Exception error) {
                                        throw new IllegalStateException(error);
                                    }
                                });
            }
        }
    }

    private static Predicate equal(RowType type, JsonNode where) {
        PredicateBuilder builder = new PredicateBuilder(type);
        int index = type.getFieldIndex(where.get("column").asText());
        JsonNode value = where.get("value");
        if (value.isNull()) {
            return builder.isNull(index);
        }
        DataType column = type.getTypeAt(index);
        return builder.equal(index, PredicateBuilder.convertJavaObject(column, literal(column, value)));
    }

    private static Object literal(DataType type, JsonNode value) {
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return value.asBoolean();
            case FLOAT:
            case DOUBLE:
                return Double.valueOf(value.asText());
            case DECIMAL:
                return new java.math.BigDecimal(value.asText());
            case DATE:
                return java.time.LocalDate.ofEpochDay(value.asLong());
            case TINYINT:
            case SMALLINT:
            case INTEGER:
            case BIGINT:
                return value.asLong();
            case CHAR:
            case VARCHAR:
                return value.asText();
            default:
                throw new IllegalArgumentException("no filter on a column of type " + type);
        }
    }

    private static Map<String, Object> facts(FileStoreTable table) throws Exception {
        List<Object> snapshots = new ArrayList<>();
        for (Snapshot each : table.snapshotManager().safelyGetAllSnapshots()) {
            snapshots.add(JSON.readTree(each.toJson()));
        }
        RowType partition = table.schema().logicalPartitionType();
        List<Object> partitions = new ArrayList<>();
        for (PartitionEntry each : table.newSnapshotReader().partitionEntries()) {
            Map<String, Object> facts = new LinkedHashMap<>();
            facts.put("values", struct(each.partition(), partition));
            facts.put("rows", each.recordCount());
            facts.put("files", each.fileCount());
            facts.put("bytes", each.fileSizeInBytes());
            partitions.add(facts);
        }
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("snapshots", snapshots);
        facts.put("partitions", partitions);
        facts.put("files", files(table));
        facts.put("options", table.options());
        facts.put("schema", JSON.readTree(JsonSerdeUtil.toFlatJson(table.schema())));
        return facts;
    }

    private static List<Object> files(FileStoreTable table) {
        List<Object> files = new ArrayList<>();
        for (DataSplit split : table.newSnapshotReader().read().dataSplits()) {
            for (DataFileMeta file : split.dataFiles()) {
                Map<String, Object> facts = new LinkedHashMap<>();
                BinaryRow partition = split.partition();
                facts.put("partition", struct(partition, table.schema().logicalPartitionType()));
                facts.put("bucket", split.bucket());
                facts.put("name", file.fileName());
                facts.put("rows", file.rowCount());
                facts.put("sequence", List.of(file.minSequenceNumber(), file.maxSequenceNumber()));
                facts.put("bytes", file.fileSize());
                facts.put("statistics", statistics(table, file));
                files.add(facts);
            }
        }
        return files;
    }

    /**
     * By column: [minimum, maximum, null count]; only columns of which the file has statistics, and
     * only of files with the table's columns.
     */
    private static Map<String, Object> statistics(FileStoreTable table, DataFileMeta file) {
        RowType type = table.schemaManager().schema(file.schemaId()).logicalRowType();
        if (!type.equals(table.rowType())) {
            return new LinkedHashMap<>();
        }
        if (file.valueStatsCols() != null) {
            type = type.project(file.valueStatsCols());
        }
        SimpleStats stats = file.valueStats();
        Map<String, Object> found = new LinkedHashMap<>();
        if (stats.minValues().getFieldCount() != type.getFieldCount()) {
            return found;
        }
        List<Object> minimum = struct(stats.minValues(), type);
        List<Object> maximum = struct(stats.maxValues(), type);
        for (int i = 0; i < minimum.size(); i++) {
            Object nulls = stats.nullCounts().isNullAt(i) ? null : stats.nullCounts().getLong(i);
            List<Object> three = new ArrayList<>();
            three.add(minimum.get(i));
            three.add(maximum.get(i));
            three.add(nulls);
            found.put(type.getFieldNames().get(i), three);
        }
        return found;
    }

    private static List<Object> struct(InternalRow row, RowType type) {
        List<Object> values = new ArrayList<>();
        for (int i = 0; i < type.getFieldCount(); i++) {
            DataType field = type.getTypeAt(i);
            values.add(value(InternalRow.createFieldGetter(field, i).getFieldOrNull(row), field));
        }
        return values;
    }

    private static List<Object> elements(InternalArray array, DataType type) {
        InternalArray.ElementGetter getter = InternalArray.createElementGetter(type);
        List<Object> values = new ArrayList<>();
        for (int i = 0; i < array.size(); i++) {
            values.add(value(getter.getElementOrNull(array, i), type));
        }
        return values;
    }

    private static Object value(Object value, DataType type) {
        if (value == null) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
            case TINYINT:
            case SMALLINT:
            case INTEGER:
            case BIGINT:
            case DATE:
            case TIME_WITHOUT_TIME_ZONE:
                return value;
            case FLOAT:
            case DOUBLE:
                return Double.toString(((Number) value).doubleValue());
            case CHAR:
            case VARCHAR:
            case DECIMAL:
                return value.toString();
            case BINARY:
            case VARBINARY:
                return Base64.getEncoder().encodeToString((byte[]) value);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                Timestamp time = (Timestamp) value;
                return List.of(time.getMillisecond(), time.getNanoOfMillisecond());
            case ARRAY:
                return elements((InternalArray) value, ((ArrayType) type).getElementType());
            case MAP:
                InternalMap map = (InternalMap) value;
                List<Object> keys = elements(map.keyArray(), ((MapType) type).getKeyType());
                List<Object> items = elements(map.valueArray(), ((MapType) type).getValueType());
                List<Object> pairs = new ArrayList<>();
                for (int i = 0; i < keys.size(); i++) {
                    List<Object> pair = new ArrayList<>();
                    pair.add(keys.get(i));
                    pair.add(items.get(i));
                    pairs.add(pair);
                }
                return pairs;
            case ROW:
                return struct((InternalRow) value, (RowType) type);
            default:
                throw new IllegalArgumentException("the judge does not read values of type " + type);
        }
    }
}
