//! The cells of a table.

/// One cell of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Unknown to this back end.
    #[default]
    Null,
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// Text.
    Text(String),
    /// A flag.
    Bool(bool),
}

macro_rules! value_from_int {
    ($($t:ty),*) => { $(impl From<$t> for Value {
        fn from(v: $t) -> Value {
            Value::Int(i64::try_from(v).unwrap_or(i64::MAX))
        }
    })* };
}
value_from_int!(i64, u64, i32, u32, u16, usize);

impl From<f64> for Value {
    fn from(v: f64) -> Value {
        Value::Float(v)
    }
}
impl From<bool> for Value {
    fn from(v: bool) -> Value {
        Value::Bool(v)
    }
}
impl From<&str> for Value {
    fn from(v: &str) -> Value {
        Value::Text(v.to_owned())
    }
}
impl From<String> for Value {
    fn from(v: String) -> Value {
        Value::Text(v)
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Value {
        v.map_or(Value::Null, Into::into)
    }
}
