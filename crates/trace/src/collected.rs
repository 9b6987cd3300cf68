//! Tables of runs whose traces nobody keeps: the rows of many runs in one file.

use crate::schema::Row;
use crate::writer::{Buffered, TraceError};
use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::Schema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Tables of one run, in memory.
#[derive(Debug, Default)]
pub struct Collected(BTreeMap<&'static str, RecordBatch>);

impl Collected {
    /// Takes the rows of a table.
    pub fn save<R: Row>(&mut self, rows: impl IntoIterator<Item = R>) {
        let mut buffered = Buffered::<R>::new();
        rows.into_iter().for_each(|row| buffered.push(&row));
        self.0.insert(R::TABLE.name, buffered.batch());
    }
}

/// The tables of many runs in a folder, each as one Arrow stream `TABLE.arrows`, where the rows of a run are
/// together.
pub struct Streams {
    folder: PathBuf,
    wanted: Vec<String>,
    tables: BTreeMap<&'static str, Stream>,
}

/// Where the rows of a run are in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rows {
    /// Number of the first one.
    pub first: usize,
    /// How many there are.
    pub number: usize,
}

struct Stream {
    path: PathBuf,
    writer: StreamWriter<BufWriter<File>>,
    rows: usize,
}

impl Streams {
    /// Streams of the tables `wanted` in `folder`.
    pub fn new(folder: &Path, wanted: &[String]) -> Streams {
        Streams { folder: folder.to_owned(), wanted: wanted.to_vec(), tables: BTreeMap::new() }
    }

    /// The tables that they hold.
    pub fn wanted(&self) -> &[String] {
        &self.wanted
    }

    /// Appends the rows of a run, which can be read when the call returns. After an error, no rows of later
    /// runs can.
    pub fn append(&mut self, run: &Collected) -> Result<BTreeMap<&'static str, Rows>, TraceError> {
        let mut found = BTreeMap::new();
        for (name, batch) in &run.0 {
            if !self.tables.contains_key(name) {
                let path = self.folder.join(format!("{name}.arrows"));
                self.tables.insert(name, Stream::create(path, &batch.schema())?);
            }
            let table = self.tables.get_mut(name).expect("it is there now");
            found.insert(*name, table.append(batch)?);
        }
        Ok(found)
    }
}

impl Stream {
    fn create(path: PathBuf, schema: &Schema) -> Result<Stream, TraceError> {
        let file = File::create(&path).map_err(|source| TraceError::Io { path: path.clone(), source })?;
        match StreamWriter::try_new(BufWriter::new(file), schema) {
            Ok(writer) => Ok(Stream { path, writer, rows: 0 }),
            Err(source) => Err(TraceError::Arrow { path, source }),
        }
    }

    fn append(&mut self, batch: &RecordBatch) -> Result<Rows, TraceError> {
        let written = self.writer.write(batch).and_then(|()| self.writer.flush());
        written.map_err(|source| TraceError::Arrow { path: self.path.clone(), source })?;
        let rows = Rows { first: self.rows, number: batch.num_rows() };
        self.rows += rows.number;
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Chunk;
    use arrow_ipc::reader::StreamReader;

    fn run(times: std::ops::Range<i64>) -> impl Iterator<Item = Chunk> {
        times.map(|time| {
            crate::row!(Chunk { visit: 0, request: "r1", connection: 1, time: time, bytes: 1448 })
        })
    }

    #[test]
    fn the_rows_of_a_run_follow_those_of_earlier_runs() {
        let folder = std::env::temp_dir().join(format!("wirepaint-collected-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut streams = Streams::new(&folder, &["chunk".to_owned()]);
        for (times, first) in [(0..3, 0), (3..3, 3), (3..8, 3)] {
            let (number, mut collected) = (times.clone().count(), Collected::default());
            collected.save(run(times));
            let rows = streams.append(&collected).unwrap();
            assert_eq!(rows, BTreeMap::from([("chunk", Rows { first, number })]));
        }
        let stream = StreamReader::try_new(File::open(folder.join("chunk.arrows")).unwrap(), None).unwrap();
        assert_eq!(stream.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 8);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
