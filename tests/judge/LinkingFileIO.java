import java.io.File;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import org.apache.paimon.fs.FileIO;
import org.apache.paimon.fs.FileIOLoader;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;

/**
 * Local files, whose renames never replace a file, as in HDFS. Paimon's own look whether the target
 * exists and then rename, under a lock of their process: they replace the snapshot that another
 * process creates in between.
 */
public final class LinkingFileIO extends LocalFileIO {
    @Override
    public boolean rename(Path source, Path target) throws IOException {
        File from = toFile(source);
        File to = toFile(target);
        if (from.isDirectory() || to.isDirectory()) {
            return super.rename(source, target);
        }
        to.getParentFile().mkdirs();
        try {
            Files.createLink(to.toPath(), from.toPath());
        } catch (FileAlreadyExistsException taken) {
            return false;
        }
        Files.delete(from.toPath());
        return true;
    }

    /** For paths that begin with "file:". */
    public static final class Loader implements FileIOLoader {
        @Override
        public String getScheme() {
            return "file";
        }

        @Override
        public FileIO load(Path path) {
            return new LinkingFileIO();
        }
    }
}
