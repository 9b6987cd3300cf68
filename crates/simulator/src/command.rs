//! The verb `simulate`: many runs in one process, on all cores.

use crate::engine::Engine;
use crate::error::Error;
use crate::pages::Shared;
use crate::summary::Summary;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wirepaint_congestion_native::Watch;
use wirepaint_run::{Proxy, Run};
use wirepaint_trace::schema::{self, ColumnType};
use wirepaint_trace::{Row, Rows, Streams, TableWriter, TraceError, Value};

/// Pending jobs: run files, runs of a JSONL file, or paths that arrive on stdin.
type Queue<'a> = Box<dyn Iterator<Item = Result<Job, Unread>> + Send + 'a>;

/// Time between two looks at the hooks of congestion controls, and the looks that one may last. They take a
/// microsecond. Looks are counted: a machine that was suspended has not looked.
const LOOK: Duration = Duration::from_secs(1);
const MOST_LOOKS: u32 = 10;

/// Bytes of stdin that are read at once.
const ROOM: usize = 1 << 20;

/// What could not be read, and why.
struct Unread {
    place: PathBuf,
    error: String,
}

/// A run description, and its source for errors.
struct Job {
    place: PathBuf,
    text: Vec<u8>,
    /// In place of the description's own.
    pages: Option<Arc<Shared>>,
}

/// Carries out every run that `inputs` name and prints one JSON line per run as it completes:
/// its [`Summary`](crate::summary::Summary), the input's name as `run` and the digest of all rows of its tables as
/// `trace`, or `run`, `error` and `exit_code`.
///
/// An input is a run description, a file of one description a line (`.jsonl`), or `-`: paths of run
/// descriptions on stdin, one a line, taken as they come. A path with a tab and the description behind it is
/// not read. Pages that many runs share come once: a line of a tab, a name, a tab and the pages as JSON. They take
/// the place of earlier ones of that name, and are the pages of a run with a tab and the name behind its description.
/// Exit code 0: all done; 2: a description was refused; 1: a run failed.
///
/// With `collected` no run has a trace of its own. The rows of all runs go into these streams instead. A line
/// then also has where its `rows` are, by table. Lines come together while more runs wait on stdin: each by itself
/// would wake the reader.
pub fn command(inputs: &[PathBuf], workers: usize, collected: Option<Streams>) -> ExitCode {
    ExitCode::from(carry_out(inputs, workers, collected, std::io::stdout()))
}

/// Like [`command`], but writes the lines to `lines` and returns the exit code.
pub fn carry_out(
    inputs: &[PathBuf],
    workers: usize,
    collected: Option<Streams>,
    lines: impl Write + Send,
) -> u8 {
    let lines = Mutex::new(BufWriter::new(lines));
    let collected = collected.map(Mutex::new);
    let more_wait = AtomicBool::new(false);
    let queue: Mutex<Queue> = Mutex::new(Box::new(inputs.iter().flat_map(|input| jobs(input, &more_wait))));
    let lines = Lines { lines, held: collected.is_some().then_some(&more_wait) };
    let worst = AtomicU8::new(0);
    std::thread::scope(|scope| {
        let (working, ended) = channel::<()>();
        for _ in 0..workers.max(1) {
            let (working, queue, collected, lines, worst) =
                (working.clone(), &queue, collected.as_ref(), &lines, &worst);
            scope.spawn(move || {
                let _working = working;
                loop {
                    let job = queue.lock().expect("no worker panics with the queue").next();
                    let Some(job) = job else { return };
                    let code = one(job, collected, lines);
                    // 2 outranks 1, as elsewhere: bad input comes first.
                    worst.fetch_max(code, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(move || end_with_a_hook_that_never_ends(&ended));
    });
    worst.into_inner()
}

/// Ends the program if a hook of a congestion control lasts too long; returns once nobody is `working`.
fn end_with_a_hook_that_never_ends(working: &Receiver<()>) {
    let mut watch = Watch::default();
    while matches!(working.recv_timeout(LOOK), Err(RecvTimeoutError::Timeout)) {
        if let Some(name) = watch.look(MOST_LOOKS) {
            eprintln!(
                "congestion control {name}: a hook has not ended for {MOST_LOOKS} s: does it loop without end?"
            );
            std::process::exit(1);
        }
    }
}

/// Where the lines of runs go.
struct Lines<'a, W: Write> {
    lines: Mutex<BufWriter<W>>,
    /// Lines are held back while this is true.
    held: Option<&'a AtomicBool>,
}

impl<W: Write> Lines<'_, W> {
    fn say(&self, line: &str) {
        let mut lines = self.lines.lock().expect("no worker panics while it writes");
        let holds = self.held.is_some_and(|more_wait| more_wait.load(Ordering::Acquire));
        // If the reader has closed the pipe, traces are still written.
        let _ = writeln!(lines, "{line}").and_then(|()| if holds { Ok(()) } else { lines.flush() });
    }
}

/// The lines of a reader as they come; `more_wait` says whether another one is there already.
fn lines_of(source: impl Read, more_wait: &AtomicBool) -> impl Iterator<Item = std::io::Result<String>> {
    let mut reader = BufReader::with_capacity(ROOM, source);
    std::iter::from_fn(move || {
        let mut line = String::new();
        let read = reader.read_line(&mut line);
        more_wait.store(reader.buffer().contains(&b'\n'), Ordering::Release);
        match read {
            Ok(0) => None,
            Ok(_) => {
                if line.ends_with('\n') {
                    line.pop();
                }
                Some(Ok(line))
            }
            Err(error) => Some(Err(error)),
        }
    })
}

/// The runs of one input; `more_wait` says whether another one is there already.
fn jobs<'a>(input: &Path, more_wait: &'a AtomicBool) -> Queue<'a> {
    let read = |path: PathBuf| match std::fs::read(&path) {
        Ok(text) => Ok(Job { place: path, text, pages: None }),
        Err(error) => Err(Unread { error: format!("{}: {error}", path.display()), place: path }),
    };
    if input == Path::new("-") {
        let lines = lines_of(std::io::stdin(), more_wait);
        let mut shared: BTreeMap<String, Arc<Shared>> = BTreeMap::new();
        return Box::new(lines.filter_map(move |line| {
            let line = match line {
                Ok(line) => line,
                Err(error) => {
                    return Some(Err(Unread { place: "-".into(), error: format!("stdin: {error}") }));
                }
            };
            let mut parts = line.split('\t');
            Some(match (parts.next(), parts.next(), parts.next()) {
                (Some(""), Some(name), Some(pages)) => {
                    shared.insert(name.to_owned(), Arc::new(Shared::new(pages)));
                    return None;
                }
                (Some(place), Some(text), None) => {
                    Ok(Job { place: place.into(), text: text.into(), pages: None })
                }
                (Some(place), Some(text), Some(name)) => match shared.get(name) {
                    None => Err(Unread {
                        place: place.into(),
                        error: format!("{place}: found the pages {name:?}, accepted: those of a line before"),
                    }),
                    pages => Ok(Job { place: place.into(), text: text.into(), pages: pages.cloned() }),
                },
                _ => read(PathBuf::from(line)),
            })
        }));
    }
    if input.extension().is_none_or(|ending| ending != "jsonl") {
        return Box::new(std::iter::once(read(input.to_owned())));
    }
    let file = match std::fs::File::open(input) {
        Ok(file) => file,
        Err(error) => {
            let error = format!("{}: {error}", input.display());
            return Box::new(std::iter::once(Err(Unread { place: input.to_owned(), error })));
        }
    };
    let name = input.display().to_string();
    let lines = std::io::BufReader::new(file).lines().enumerate();
    Box::new(lines.map(move |(index, line)| match line {
        Ok(text) => Ok(Job { place: format!("{name}:{}", index + 1).into(), text: text.into(), pages: None }),
        Err(error) => Err(Unread { place: name.clone().into(), error: format!("{name}: {error}") }),
    }))
}

/// Carries a run out, prints its line and returns its exit code.
fn one(job: Result<Job, Unread>, collected: Option<&Mutex<Streams>>, lines: &Lines<impl Write>) -> u8 {
    let failed = |place: &Path, error: String, code: u8| {
        eprintln!("{error}");
        (json!({"run": place, "error": error, "exit_code": code}).to_string(), code)
    };
    let (line, code) = match job {
        Ok(job) => match simulate(&job, collected) {
            Ok(line) => (line, 0),
            Err(error) => failed(&job.place, error.to_string(), error.exit_code()),
        },
        Err(Unread { place, error }) => failed(&place, error, 2),
    };
    lines.say(&line);
    code
}

fn simulate(job: &Job, collected: Option<&Mutex<Streams>>) -> Result<String, Error> {
    let run = Run::parse(&job.text, &job.place)?;
    let mut engine = match &job.pages {
        Some(shared) => Engine::with_pages(&run, shared.pages(&job.place)?, &job.place)?,
        None => Engine::new(&run, &job.place)?,
    };
    let mut summary = engine.run();
    let (rows, trace) = if let Some(streams) = collected {
        summary.links.clear(); // as the other tables, they are in the streams where they are wanted
        let streams = || streams.lock().expect("no worker panics with the streams");
        let wanted = streams().wanted().to_vec();
        let (tables, digest) = engine.collect_tables(&wanted)?;
        (Some(streams().append(&tables)?), digest)
    } else {
        std::fs::create_dir_all(&run.trace_dir)
            .map_err(|source| TraceError::Io { path: run.trace_dir.clone(), source })?;
        let trace = engine.write_tables(&run.trace_dir)?;
        if let Some(asked) = &run.row {
            TableWriter::save(&run.trace_dir, [row_of_run(asked, &run, &summary, &job.place)?])?;
        }
        (None, trace)
    };
    let line = Line { run: &job.place, summary, rows, trace };
    Ok(serde_json::to_string(&line).expect("a summary is plain data"))
}

/// The row of the table `run`: what was `asked`, and what the simulator found.
fn row_of_run(
    asked: &BTreeMap<String, serde_json::Value>,
    run: &Run,
    summary: &Summary,
    place: &Path,
) -> Result<schema::Run, Error> {
    let refused = |key: &str, found: &str, accepted: &str| {
        Error::value(place, format!("row.{key}"), found.to_owned(), accepted.to_owned())
    };
    let columns = schema::Run::TABLE.columns;
    if let Some(name) = asked.keys().find(|name| columns.iter().all(|column| column.name != *name)) {
        return Err(refused(name, "no column of the table run", "one of schema/trace.json"));
    }
    // Beside a PEP the browsers' connections do not cross the scenario's link.
    let has_pep = run.proxies.iter().any(|proxy| matches!(proxy, Proxy::Pep(_)));
    let sender = summary.connections.iter().find(|each| !has_pep || each.protocol == Some("pep"));
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut failure = None;
    let row = schema::Run::from_cells(|column| match column.name {
        "started_unix" => Value::Int(i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX)),
        "duration" => summary.duration.into(),
        "server_congestion" => sender.map(|sender| sender.congestion).into(),
        "server_initial_window" => sender.and_then(|sender| sender.initial_window).into(),
        "ahead_bytes" => summary.ahead.as_ref().map(|ahead| ahead.bytes).into(),
        "ahead_unused_bytes" => summary.ahead.as_ref().map(|ahead| ahead.unused_bytes).into(),
        name => asked.get(name).map_or(Value::Null, |cell| {
            cell_of(cell, column.column_type).unwrap_or_else(|accepted| {
                failure.get_or_insert_with(|| refused(name, &cell.to_string(), accepted));
                Value::Null
            })
        }),
    });
    failure.map_or(Ok(row), Err)
}

/// A value of a description as a cell; what is accepted if it is of another type.
fn cell_of(value: &serde_json::Value, of: ColumnType) -> Result<Value, &'static str> {
    match of {
        _ if value.is_null() => Some(Value::Null),
        ColumnType::Int64 => value.as_i64().map(Value::Int),
        ColumnType::Float64 => value.as_f64().map(Value::Float),
        ColumnType::Utf8 => value.as_str().map(Value::from),
        ColumnType::Boolean => value.as_bool().map(Value::Bool),
    }
    .ok_or(match of {
        ColumnType::Int64 => "an integer",
        ColumnType::Float64 => "a number",
        ColumnType::Utf8 => "a text",
        ColumnType::Boolean => "true or false",
    })
}

/// The line of a run that was carried out.
#[derive(Serialize)]
struct Line<'a> {
    run: &'a Path,
    #[serde(flatten)]
    summary: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<BTreeMap<&'static str, Rows>>,
    trace: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that gives each of its parts by itself.
    struct Parts(Vec<&'static [u8]>);

    impl Read for Parts {
        fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let part = self.0.remove(0);
            room[..part.len()].copy_from_slice(part);
            Ok(part.len())
        }
    }

    #[test]
    fn lines_are_held_back_only_while_another_run_is_there_whole() {
        let more_wait = AtomicBool::new(false);
        let mut seen = Vec::new();
        for line in lines_of(Parts(vec![b"one\ntwo\nthr", b"ee\n", b"four"]), &more_wait) {
            seen.push((line.unwrap(), more_wait.load(Ordering::Acquire)));
        }
        let expected = [("one", true), ("two", false), ("three", false), ("four", false)];
        assert_eq!(seen, expected.map(|(line, more)| (line.to_owned(), more)));

        let said = Lines { lines: Mutex::new(BufWriter::new(Vec::new())), held: Some(&more_wait) };
        let written = |said: &Lines<Vec<u8>>| said.lines.lock().unwrap().get_ref().clone();
        more_wait.store(true, Ordering::Release);
        said.say("first");
        assert_eq!(written(&said), b"");
        more_wait.store(false, Ordering::Release);
        said.say("second");
        assert_eq!(written(&said), b"first\nsecond\n");
    }
}
