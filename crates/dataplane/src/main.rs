//! The one program of the data plane: everything that handles packets or bytes in time.
//!
//! A run description goes in, a trace comes out. Each long-running verb prints one JSON line
//! `{"ready": true, ...}` when it serves, stops on SIGTERM or SIGINT, and prints one JSON line
//! with its summary at the end. Errors go to stderr in one line; exit 2 is bad input, 1 a failure.

mod speed;

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use wirepaint_trace::Streams;

#[derive(Parser)]
#[command(name = "wirepaint-dataplane", version, about)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Print as one JSON object the schemas of the run description and of the trace, and the kernel settings that
    /// the simulator has.
    Schema,
    /// Forward frames between two interfaces through the link model until SIGTERM or SIGINT.
    Emulate {
        /// The run description.
        run: PathBuf,
        /// Other runs go beside this one: take this CPU, even if only others may be used, and little memory.
        #[arg(long, value_name = "CPU")]
        beside: Option<usize>,
    },
    /// Carry out simulated runs, many at once.
    Simulate {
        /// Run descriptions; files of one description a line (.jsonl); or - for paths on stdin, each alone or
        /// with a tab and its description, and pages that many runs share.
        #[arg(required = true)]
        runs: Vec<PathBuf>,
        /// Runs at a time; one per core when left out.
        #[arg(long)]
        workers: Option<usize>,
        /// Write no traces; append the rows of all runs to one Arrow stream for each table in this folder.
        #[arg(long, requires = "tables")]
        collect: Option<PathBuf>,
        /// Tables to collect.
        #[arg(long, value_delimiter = ',', requires = "collect")]
        tables: Vec<String>,
        /// Process for which this one works; when it ends, this one is killed.
        #[arg(long)]
        parent: Option<i32>,
    },
    /// Send packets over the direction down of a run's network in virtual time: one JSON object a line on
    /// stdin, what became of each on stdout.
    Cross {
        /// The run description.
        run: PathBuf,
    },
    /// Measure what a path between two network namespaces gives.
    Probe {
        /// What to measure, as a JSON object.
        request: String,
    },
    /// Serve recorded pages until SIGTERM or SIGINT.
    Replay {
        /// The run description.
        run: PathBuf,
    },
    /// End TCP connections and open others to their destinations, until SIGTERM or SIGINT.
    Split {
        /// The run description.
        run: PathBuf,
        /// Name of the proxy's host.
        #[arg(long)]
        host: String,
    },
    /// Accelerate pages over a slow segment: one side of a pair of proxies, until SIGTERM or SIGINT.
    Pep {
        /// The run description.
        run: PathBuf,
        /// The side near the clients, or the one near the servers.
        #[arg(long)]
        side: Side,
    },
    /// Carry out the flows of a run: the servers' ends here, the clients' in another network namespace.
    Flows {
        /// The run description.
        run: PathBuf,
        /// Descriptor of the clients' network namespace.
        #[arg(long)]
        client_namespace: i32,
    },
    /// Load pages as light users do, until their visits are over or SIGTERM or SIGINT comes.
    Light {
        /// The run description.
        run: PathBuf,
        /// Descriptor of the clients' network namespace; this process's own when left out.
        #[arg(long)]
        client_namespace: Option<i32>,
        /// The certificate authority that is trusted: base64 of the SHA-256 of its SubjectPublicKeyInfo, as
        /// `replay` prints it.
        #[arg(long)]
        ca_spki_sha256: Option<String>,
        /// Wait for the time from which the visits count: a line on stdin, in nanoseconds of the run.
        #[arg(long)]
        waits: bool,
    },
    /// Sample the kernel's TCP senders until SIGTERM or SIGINT.
    ProbeTcp {
        /// The run description.
        run: PathBuf,
    },
    /// Print the CPU time in nanoseconds of a fixed piece of work, the shortest of several times.
    Speed {
        /// How often to do the work.
        times: u32,
    },
    /// Congestion controls: what exists, loading them into the kernel, acknowledgement scripts.
    #[command(subcommand)]
    Cc(Cc),
}

#[derive(Clone, Copy, ValueEnum)]
enum Side {
    Remote,
    Ground,
}

#[derive(Subcommand)]
enum Cc {
    /// Print congestion controls with their parameters as JSON.
    List {
        /// C files of your own; all that ship when left out.
        files: Vec<String>,
    },
    /// Print the C source of a congestion control.
    Source {
        /// Name.
        name: String,
    },
    /// Print the names of the acknowledgement scripts that ship as JSON.
    Scripts,
    /// Register a run's congestion controls with the kernel until SIGTERM or SIGINT.
    Load {
        /// The run description.
        run: PathBuf,
    },
    /// Print the groups of connections of every loaded congestion control as JSON.
    Groups {
        /// Print them in one line for each line on stdin.
        #[arg(long)]
        each_line: bool,
    },
    /// Run acknowledgement scripts natively and say what differs.
    Script {
        /// Files, or names of scripts that ship.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print as JSON what happened and how a real path would carry it out.
        #[arg(long)]
        timetable: bool,
    },
}

fn main() -> ExitCode {
    match Cli::parse().verb {
        Verb::Schema => {
            let schemas = serde_json::json!({
                "run": schemars::schema_for!(wirepaint_run::Run),
                "trace": wirepaint_trace::schema::TABLES,
                "sysctls": wirepaint_simulator::sysctls(),
            });
            println!("{}", serde_json::to_string_pretty(&schemas).expect("schemas are plain data"));
            ExitCode::SUCCESS
        }
        Verb::Emulate { run, beside } => emulator_ended(wirepaint_emulator::command(&run, beside)),
        Verb::Simulate { runs, workers, collect, tables, parent } => {
            if parent.is_some_and(|parent| !wirepaint_run::process::die_with_parent(parent)) {
                return ExitCode::FAILURE;
            }
            let cores = || std::thread::available_parallelism().map_or(1, usize::from);
            let collected = collect.map(|folder| Streams::new(&folder, &tables));
            wirepaint_simulator::command(&runs, workers.unwrap_or_else(cores), collected)
        }
        Verb::Cross { run } => {
            let lines = std::io::BufWriter::new(std::io::stdout().lock());
            ExitCode::from(wirepaint_simulator::cross::command(&run, std::io::stdin().lock(), lines))
        }
        Verb::Probe { request } => emulator_ended(wirepaint_emulator::probe::command(&request)),
        Verb::Replay { run } => wirepaint_replay_server::command(&run),
        Verb::Split { run, host } => wirepaint_proxy::split(&run, &host),
        Verb::Pep { run, side: Side::Remote } => wirepaint_proxy::pep(&run, wirepaint_proxy::Side::Remote),
        Verb::Pep { run, side: Side::Ground } => wirepaint_proxy::pep(&run, wirepaint_proxy::Side::Ground),
        Verb::Flows { run, client_namespace } => wirepaint_traffic::command(&run, client_namespace),
        Verb::Light { run, client_namespace, ca_spki_sha256, waits } => {
            let ca_spki_sha256 = ca_spki_sha256.as_deref();
            let options = wirepaint_light_client::Options { client_namespace, ca_spki_sha256, waits };
            wirepaint_light_client::command(&run, &options)
        }
        Verb::ProbeTcp { run } => wirepaint_tcp_probe::command(&run),
        Verb::Speed { times } => {
            println!("{}", speed::shortest(times));
            ExitCode::SUCCESS
        }
        Verb::Cc(Cc::List { files }) => wirepaint_congestion_native::command::list(&files),
        Verb::Cc(Cc::Source { name }) => wirepaint_congestion_native::command::source(&name),
        Verb::Cc(Cc::Scripts) => wirepaint_congestion_native::command::shipped_scripts(),
        Verb::Cc(Cc::Load { run }) => wirepaint_congestion_kernel::command(&run),
        Verb::Cc(Cc::Groups { each_line }) => wirepaint_congestion_kernel::groups::command(each_line),
        Verb::Cc(Cc::Script { files, timetable: false }) => {
            wirepaint_congestion_scripts::command::scripts(&files)
        }
        Verb::Cc(Cc::Script { files, timetable: true }) => {
            wirepaint_congestion_scripts::command::timetables(&files)
        }
    }
}

fn emulator_ended(result: Result<(), wirepaint_emulator::Error>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}
