use crate::schema::{self, ColumnType, Row};
use crate::value::Value;
use arrow::array::{ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::Write;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        source: arrow::error::ArrowError,
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

/// Writes one table of a trace as Parquet.
///
/// Rows are appended with [`push`](Self::push); nothing is guaranteed to be on disk before
/// [`finish`](Self::finish), which syncs the file.
pub struct TableWriter<R, W: Write + Send = File> {
    schema: SchemaRef,
    builders: Vec<Builder>,
    rows: usize,
    writer: ArrowWriter<W>,
    /// What was written, if it is kept.
    written: Option<Vec<RecordBatch>>,
    path: PathBuf,
    table: PhantomData<R>,
}

impl<R: Row> TableWriter<R> {
    /// Creates the table's file in `folder`.
    pub fn create(folder: &Path) -> Result<TableWriter<R>, TraceError> {
        let path = folder.join(file_name::<R>());
        let file = File::create(&path).map_err(|source| TraceError::Io { path: path.clone(), source })?;
        TableWriter::new(file, path)
    }

    /// Writes a whole table into `folder`.
    pub fn save(folder: &Path, rows: impl IntoIterator<Item = R>) -> Result<(), TraceError> {
        let mut table = TableWriter::create(folder)?;
        rows.into_iter().try_for_each(|row| table.push(row))?;
        table.finish()
    }

    /// Writes what is buffered, closes the file and syncs it to disk.
    pub fn finish(self) -> Result<(), TraceError> {
        let path = self.path.clone();
        let (file, _) = self.close()?;
        file.sync_all().map_err(|source| TraceError::Io { path, source })
    }
}

impl<R: Row, W: Write + Send> TableWriter<R, W> {
    /// Writes to `output`; errors name `path`.
    pub(crate) fn new(output: W, path: PathBuf) -> Result<TableWriter<R, W>, TraceError> {
        let fields: Vec<Field> = R::TABLE
            .columns
            .iter()
            .map(|column| {
                let data_type = match column.column_type {
                    ColumnType::Int64 => DataType::Int64,
                    ColumnType::Float64 => DataType::Float64,
                    ColumnType::Utf8 => DataType::Utf8,
                    ColumnType::Boolean => DataType::Boolean,
                };
                Field::new(column.name, data_type, true)
            })
            .collect();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = ArrowWriter::try_new(output, schema.clone(), Some(properties))
            .map_err(|source| TraceError::Parquet { path: path.clone(), source })?;
        let builders = R::TABLE.columns.iter().map(|column| Builder::new(column.column_type)).collect();
        Ok(TableWriter { schema, builders, rows: 0, writer, written: None, path, table: PhantomData })
    }

    /// Keeps what is written; [`close`](Self::close) returns it.
    pub(crate) fn keeping(mut self) -> TableWriter<R, W> {
        self.written = Some(Vec::new());
        self
    }

    /// Appends a row. Panics when the types of the values are not those of the columns.
    pub fn push(&mut self, row: R) -> Result<(), TraceError> {
        for ((builder, value), column) in self.builders.iter_mut().zip(row.cells()).zip(R::TABLE.columns) {
            builder.push(&value, column);
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        let arrays = self.builders.iter_mut().map(Builder::finish).collect();
        self.rows = 0;
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).expect("columns have equal length");
        self.writer
            .write(&batch)
            .map_err(|source| TraceError::Parquet { path: self.path.clone(), source })?;
        self.written.iter_mut().for_each(|written| written.push(batch.clone()));
        Ok(())
    }

    /// Writes what is buffered; returns the output, and what was written if it was kept.
    pub(crate) fn close(mut self) -> Result<(W, Vec<RecordBatch>), TraceError> {
        self.flush()?;
        let TableWriter { writer, written, path, .. } = self;
        let output = writer.into_inner().map_err(|source| TraceError::Parquet { path, source })?;
        Ok((output, written.unwrap_or_default()))
    }
}

/// Name of a table's file.
pub(crate) fn file_name<R: Row>() -> String {
    format!("{}.parquet", R::TABLE.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Chunk;
    use parquet::file::reader::{FileReader, SerializedFileReader};

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
