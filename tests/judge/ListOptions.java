import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.iceberg.IcebergOptions;
import org.apache.paimon.options.ConfigOption;

/** Prints the keys of the options of Paimon's tables, one to a line. */
public class ListOptions {

    public static void main(String[] arguments) throws IllegalAccessException {
        for (Class<?> holder : new Class<?>[] {CoreOptions.class, IcebergOptions.class}) {
            for (Field field : holder.getDeclaredFields()) {
                if (field.getType() == ConfigOption.class && Modifier.isStatic(field.getModifiers())) {
                    field.setAccessible(true);
                    System.out.println(((ConfigOption<?>) field.get(null)).key());
                }
            }
        }
    }
}
