//! A digest of the rows of a trace.

use crate::schema::Row;
use crate::value::Value;
use sha2::{Digest, Sha256};

/// Bytes that are hashed at once.
const PIECE: usize = 1 << 16;

/// SHA-256 over the tables of a trace in the order in which they come, each with its name and its rows.
///
/// So it does not depend on how tables are stored.
#[derive(Default)]
pub struct RowsDigest {
    sha256: Sha256,
    waiting: Vec<u8>,
}

impl RowsDigest {
    /// Begins a table.
    pub fn table<R: Row>(&mut self) {
        self.text(R::TABLE.name);
    }

    /// Takes a row of it.
    pub fn row<R: Row>(&mut self, row: &R) {
        for cell in row.cells() {
            match cell {
                Value::Null => self.waiting.push(b'n'),
                Value::Int(number) => self.tagged(b'i', &number.to_le_bytes()),
                Value::Float(number) => self.tagged(b'f', &number.to_bits().to_le_bytes()),
                Value::Text(text) => self.text(text),
                Value::Bool(flag) => self.tagged(b'b', &[u8::from(*flag)]),
            }
        }
        if self.waiting.len() > PIECE {
            self.sha256.update(&self.waiting);
            self.waiting.clear();
        }
    }

    /// The digest: 32 hexadecimal digits.
    pub fn finish(mut self) -> String {
        self.sha256.update(&self.waiting);
        self.sha256.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn text(&mut self, text: &str) {
        self.tagged(b't', &(text.len() as u64).to_le_bytes());
        self.waiting.extend_from_slice(text.as_bytes());
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.waiting.push(tag);
        self.waiting.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;
    use crate::schema::{Chunk, Link};

    fn of(requests: &[&str], bytes: Option<i64>) -> String {
        let mut digest = RowsDigest::default();
        digest.table::<Chunk>();
        for request in requests {
            digest.row(&row!(Chunk { visit: 0, request: *request, connection: 1, time: 7, bytes: bytes }));
        }
        digest.finish()
    }

    #[test]
    fn each_cell_each_row_and_the_table_count() {
        let many = vec!["r"; 10_000];
        let mut empty = RowsDigest::default();
        empty.table::<Link>();
        let found = [
            of(&["a", "b"], Some(1)),
            of(&["b", "a"], Some(1)),
            of(&["ab"], Some(1)),
            of(&["a", "b"], Some(0)),
            of(&["a", "b"], None),
            of(&many, Some(1)),
            of(&many[1..], Some(1)),
            of(&[], None),
            empty.finish(),
            RowsDigest::default().finish(),
        ];
        let different: std::collections::BTreeSet<&String> = found.iter().collect();
        assert_eq!(different.len(), found.len());
        assert_eq!(found[5], of(&many, Some(1)));
        assert!(found.iter().all(|digest| digest.len() == 32));
    }
}
