use crate::schema::{self, ColumnType, Row};
use crate::value::Value;
use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Rows that are buffered before they are encoded.
const BATCH_ROWS: usize = 65_536;

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be created or synced.
    #[error("writing {path}: {source}")]
    Io {
        /// File that was written.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The encoder failed.
    #[error("writing {path}: {source}")]
    Parquet {
        /// File that was written.
        path: PathBuf,
        /// What the encoder said.
        source: parquet::errors::ParquetError,
    },
    /// The encoder of a stream failed.
    #[error("writing {path}: {source}")]
    Arrow {
        /// File that was written.
        path: PathBuf,
        /// What the encoder said.
        source: arrow_schema::ArrowError,
    },
}

enum Builder {
    Int(Int64Builder),
    Float(Float64Builder),
    Text(StringBuilder),
    Bool(BooleanBuilder),
}

impl Builder {
    fn new(column_type: ColumnType) -> Builder {
        match column_type {
            ColumnType::Int64 => Builder::Int(Int64Builder::new()),
            ColumnType::Float64 => Builder::Float(Float64Builder::new()),
            ColumnType::Utf8 => Builder::Text(StringBuilder::new()),
            ColumnType::Boolean => Builder::Bool(BooleanBuilder::new()),
        }
    }

    /// Panics on a value of another type: a bug of the caller, not a circumstance.
    fn push(&mut self, value: &Value, column: &schema::Column) {
        match (self, value) {
            (Builder::Int(b), Value::Int(v)) => b.append_value(*v),
            (Builder::Int(b), Value::Null) => b.append_null(),
            (Builder::Float(b), Value::Float(v)) => b.append_value(*v),
            (Builder::Float(b), Value::Null) => b.append_null(),
            (Builder::Text(b), Value::Text(v)) => b.append_value(v),
            (Builder::Text(b), Value::Null) => b.append_null(),
            (Builder::Bool(b), Value::Bool(v)) => b.append_value(*v),
            (Builder::Bool(b), Value::Null) => b.append_null(),
            (_, value) => panic!("column {} is {:?}, got {value:?}", column.name, column.column_type),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Int(b) => Arc::new(b.finish()),
            Builder::Float(b) => Arc::new(b.finish()),
            Builder::Text(b) => Arc::new(b.finish()),
            Builder::Bool(b) => Arc::new(b.finish()),
        }
    }
}

/// Rows of a table that are not yet a record batch.
pub(crate) struct Buffered<R> {
    builders: Vec<Builder>,
    rows: usize,
    table: PhantomData<R>,
}

impl<R: Row> Buffered<R> {
    pub fn new() -> Buffered<R> {
        let builders = R::TABLE.columns.iter().map(|column| Builder::new(column.column_type)).collect();
        Buffered { builders, rows: 0, table: PhantomData }
    }

    /// Appends a row. Panics when the types of the values are not those of the columns.
    pub fn push(&mut self, row: &R) {
        for ((builder, value), column) in self.builders.iter_mut().zip(row.cells()).zip(R::TABLE.columns) {
            builder.push(value, column);
        }
        self.rows += 1;
    }

    /// The rows, which are taken out.
    pub fn batch(&mut self) -> RecordBatch {
        self.rows = 0;
        let arrays = self.builders.iter_mut().map(Builder::finish).collect();
        RecordBatch::try_new(Layout::of(R::TABLE).schema.clone(), arrays).expect("columns have equal length")
    }
}

/// What all files of a table have in common.
struct Layout {
    schema: SchemaRef,
    parquet: TypePtr,
    properties: WriterPropertiesPtr,
    /// Makes the encoder of a column, for each column.
    columns: Vec<ArrowRowGroupWriterFactory>,
}

impl Layout {
    fn of(table: &schema::Table) -> Arc<Layout> {
        static KNOWN: Mutex<BTreeMap<&str, Arc<Layout>>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().expect("no thread panics with it");
        known.entry(table.name).or_insert_with(|| Arc::new(Layout::new(table))).clone()
    }

    fn new(table: &schema::Table) -> Layout {
        let field = |column: &schema::Column| {
            let data_type = match column.column_type {
                ColumnType::Int64 => DataType::Int64,
                ColumnType::Float64 => DataType::Float64,
                ColumnType::Utf8 => DataType::Utf8,
                ColumnType::Boolean => DataType::Boolean,
            };
            Field::new(column.name, data_type, true)
        };
        let fields: Vec<Field> = table.columns.iter().map(field).collect();
        let of = |fields: Vec<Field>| {
            let schema: SchemaRef = Arc::new(Schema::new(fields));
            let writer = ArrowWriter::try_new(std::io::sink(), schema.clone(), Some(properties()));
            let (file, columns) = writer
                .and_then(ArrowWriter::into_serialized_writer)
                .expect("the columns have types of Parquet");
            (schema, file, columns)
        };
        let columns = fields.iter().map(|field| of(vec![field.clone()]).2).collect();
        let (schema, file, _) = of(fields);
        let parquet = file.schema_descr().root_schema_ptr();
        Layout { schema, parquet, properties: file.properties().clone(), columns }
    }

    /// Writes a file as [`ArrowWriter`] does, but one column after the other: an encoder of the crate takes
    /// 70 kB, however few its values are, and those of a whole table do not fit a processor's cache.
    fn write<W: Write + Send>(&self, output: W, batch: &RecordBatch) -> Result<W, ParquetError> {
        let mut file = SerializedFileWriter::new(output, self.parquet.clone(), self.properties.clone())?;
        if batch.num_rows() > 0 {
            let mut group = file.next_row_group()?;
            let columns = self.schema.fields().iter().zip(batch.columns());
            for ((field, values), column) in columns.zip(&self.columns) {
                // Our columns have one leaf each.
                for (mut encoder, leaf) in
                    column.create_column_writers(0)?.into_iter().zip(compute_leaves(field, values)?)
                {
                    encoder.write(&leaf)?;
                    encoder.close()?.append_to_row_group(&mut group)?;
                }
            }
            group.close()?;
        }
        file.into_inner()
    }
}

fn properties() -> WriterProperties {
    WriterProperties::builder().set_compression(Compression::SNAPPY).build()
}

/// Writes one table of a trace as Parquet.
///
/// Rows are appended with [`push`](Self::push); nothing is guaranteed to be on disk before
/// [`finish`](Self::finish), which syncs the file.
pub struct TableWriter<R, W: Write + Send = File> {
    layout: Arc<Layout>,
    rows: Buffered<R>,
    /// Where the file goes, until a batch is full.
    output: Option<W>,
    /// From then on.
    writer: Option<ArrowWriter<W>>,
    path: PathBuf,
}

impl<R: Row> TableWriter<R> {
    /// Creates the table's file in `folder`.
    pub fn create(folder: &Path) -> Result<TableWriter<R>, TraceError> {
        let path = folder.join(file_name::<R>());
        let file = File::create(&path).map_err(|source| TraceError::Io { path: path.clone(), source })?;
        Ok(TableWriter::new(file, path))
    }

    /// Writes a whole table into `folder`.
    pub fn save(folder: &Path, rows: impl IntoIterator<Item = R>) -> Result<(), TraceError> {
        let mut table = TableWriter::create(folder)?;
        rows.into_iter().try_for_each(|row| table.push(&row))?;
        table.finish()
    }

    /// Writes what is buffered, closes the file and syncs it to disk.
    pub fn finish(self) -> Result<(), TraceError> {
        let path = self.path.clone();
        self.close()?.sync_all().map_err(|source| TraceError::Io { path, source })
    }
}

impl<R: Row, W: Write + Send> TableWriter<R, W> {
    /// Writes to `output`; errors name `path`.
    fn new(output: W, path: PathBuf) -> TableWriter<R, W> {
        let layout = Layout::of(R::TABLE);
        TableWriter { layout, rows: Buffered::new(), output: Some(output), writer: None, path }
    }

    /// Appends a row. Panics when the types of the values are not those of the columns.
    pub fn push(&mut self, row: &R) -> Result<(), TraceError> {
        self.rows.push(row);
        if self.rows.rows == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        let batch = self.rows.batch();
        let schema = &self.layout.schema;
        let begun =
            self.output.take().map(|output| ArrowWriter::try_new(output, schema.clone(), Some(properties())));
        let written = begun.transpose().and_then(|begun| {
            let writer = self.writer.get_or_insert_with(|| begun.expect("the output is not yet taken"));
            writer.write(&batch)
        });
        written.map_err(|source| TraceError::Parquet { path: self.path.clone(), source })
    }

    /// Writes what is buffered; returns the output.
    fn close(mut self) -> Result<W, TraceError> {
        let batch = self.rows.batch();
        let output = match (self.output, self.writer) {
            (Some(output), _) => self.layout.write(output, &batch),
            (None, writer) => {
                let mut writer = writer.expect("it has the output");
                writer.write(&batch).and_then(|()| writer.into_inner())
            }
        };
        output.map_err(|source| TraceError::Parquet { path: self.path, source })
    }
}

/// Name of a table's file.
fn file_name<R: Row>() -> String {
    format!("{}.parquet", R::TABLE.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Chunk;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    fn chunks(number: i64) -> impl Iterator<Item = Chunk> {
        (0..number).map(|n| {
            let connection = (n % 3 > 0).then_some(n);
            crate::row!(Chunk {
                visit: 0,
                request: format!("r{}", n / 4),
                connection: connection,
                time: n,
                bytes: 1448
            })
        })
    }

    #[test]
    fn a_table_of_any_size_is_the_file_that_arrow_writer_makes() {
        let batch = BATCH_ROWS as i64;
        for rows in [0, 1, 5_000, batch, 2 * batch + 1] {
            let mut table = TableWriter::<Chunk, Vec<u8>>::new(Vec::new(), "chunk".into());
            let mut whole = ArrowWriter::try_new(Vec::new(), table.layout.schema.clone(), Some(properties()));
            let mut buffered = Buffered::<Chunk>::new();
            for row in chunks(rows) {
                table.push(&row).unwrap();
                buffered.push(&row);
                if buffered.rows == BATCH_ROWS {
                    whole.as_mut().unwrap().write(&buffered.batch()).unwrap();
                }
            }
            whole.as_mut().unwrap().write(&buffered.batch()).unwrap();
            assert!(table.close().unwrap() == whole.unwrap().into_inner().unwrap(), "{rows} rows");
        }
    }

    #[test]
    fn a_table_is_read_back_with_every_row_and_null() {
        let folder = std::env::temp_dir().join(format!("wirepaint-trace-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let chunks = (0..3_i64).map(|n| {
            crate::row!(Chunk {
                visit: 0,
                request: "r1",
                connection: Option::<i64>::None,
                time: n,
                bytes: 1448
            })
        });
        TableWriter::save(&folder, chunks).unwrap();
        let reader = SerializedFileReader::new(File::open(folder.join("chunk.parquet")).unwrap()).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 3);
        let row = reader.get_row_iter(None).unwrap().nth(2).unwrap().unwrap();
        assert_eq!(row.to_string(), r#"{visit: 0, request: "r1", connection: null, time: 2, bytes: 1448}"#);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
