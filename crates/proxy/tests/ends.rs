//! How connections of the PEP end when a side of it stops, and what its connections carry while they live.

mod support;

use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::thread;
use std::time::{Duration, Instant};
use support::origin::{answer, answering, before, connect, get, head, with_length};
use support::{Folder, Pep, free_port, pep_run, skips};

/// Answers with more than all buffers hold.
fn endless(mut stream: TcpStream, _: usize) {
    if head(&mut stream).is_some() {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        while stream.write_all(&[0; 100_000]).is_ok() {}
    }
}

/// A browser that asks for such an answer and has its first bytes.
fn reading(origin: SocketAddr) -> TcpStream {
    let mut client = connect(origin);
    client.write_all(get("/").as_bytes()).unwrap();
    client.read_exact(&mut [0; 10_000]).unwrap();
    client
}

fn link_port(pep: &Pep) -> u16 {
    let run: serde_json::Value =
        serde_json::from_slice(&std::fs::read(pep.folder.0.join("run.json")).unwrap()).unwrap();
    run["proxies"][0]["port"].as_u64().unwrap() as u16
}

/// Sockets of a port that have sent their end and still wait for its acknowledgement.
fn ending(port: u16) -> usize {
    const FIN_WAIT1: &str = "04";
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let of_port = |line: &&str| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().unwrap();
        let state = fields.nth(1).unwrap();
        local.ends_with(&format!(":{port:04X}")) && state == FIN_WAIT1
    };
    table.lines().skip(1).filter(of_port).count()
}

#[test]
fn a_ground_side_that_stops_in_mid_answer_resets_the_browser_and_counts_as_lost() {
    if skips() {
        return;
    }
    let (pep, origin) = before(endless, |_| {});
    let mut client = reading(origin);
    assert_eq!(pep.ground.stop()["lost"], json!([]));
    let error = client.read_to_end(&mut Vec::new()).unwrap_err().kind();
    assert_eq!(error, ErrorKind::ConnectionReset);
    let summary = pep.remote.stop();
    assert_eq!(summary["lost"].as_array().unwrap().len(), 3, "each of its connections: {summary}");
}

#[test]
fn a_ground_side_that_stops_between_two_answers_counts_as_lost_too() {
    if skips() {
        return;
    }
    let (pep, origin) = before(answering(|_| with_length(b"answer")), |_| {});
    let mut client = connect(origin);
    client.write_all(get("/").as_bytes()).unwrap();
    assert_eq!(answer(&mut client).1, b"answer");
    pep.ground.stop();
    thread::sleep(Duration::from_millis(100));
    assert_eq!(pep.remote.stop()["lost"].as_array().unwrap().len(), 3);
}

#[test]
fn a_remote_side_that_stops_in_mid_answer_is_no_loss_for_the_ground_side() {
    if skips() {
        return;
    }
    let (pep, origin) = before(endless, |_| {});
    let _client = reading(origin);
    assert_eq!(pep.remote.stop()["lost"], json!([]));
    thread::sleep(Duration::from_millis(100));
    assert_eq!(pep.ground.stop()["lost"], json!([]));
}

#[test]
fn sides_that_stop_leave_no_socket_that_still_tries_to_send() {
    if skips() {
        return;
    }
    let (pep, origin) = before(endless, |_| {});
    let clients: Vec<_> = (0..4).map(|_| reading(origin)).collect();
    thread::sleep(Duration::from_millis(500));
    pep.remote.stop();
    assert_eq!(ending(origin.port()), 0, "browsers that do not read");
    drop(clients);

    let (pep, origin) = before(endless, |_| {});
    let _client = reading(origin);
    let port = link_port(&pep);
    pep.remote.signal(libc::SIGSTOP);
    thread::sleep(Duration::from_millis(500));
    pep.ground.stop();
    assert_eq!(ending(port), 0, "a remote side that does not read");
}

#[test]
fn an_origin_that_cannot_be_reached_resets_the_browser_and_is_in_the_records() {
    if skips() {
        return;
    }
    let (folder, port) = (Folder::new(), free_port());
    let run = pep_run(&folder, &[("http", "a.test")], port, free_port());
    let pep = Pep::start(folder, &run);
    let mut client = connect(format!("{}:{port}", support::address(1)).parse().unwrap());
    client.write_all(get("/").as_bytes()).unwrap();
    let error = client.read_to_end(&mut Vec::new()).unwrap_err().kind();
    assert_eq!(error, ErrorKind::ConnectionReset);
    assert_eq!(pep.remote.stop()["refused"], 0);
    assert_eq!(pep.ground.stop()["refused"], 1);
    let refused = &pep.folder.records("ground")["refused"][0];
    assert!(refused["reason"].as_str().unwrap().contains("refused"), "{refused}");
    assert_eq!(refused["carries"], json!(null));
}

#[test]
fn a_connection_that_its_origin_closed_while_idle_costs_no_other_one() {
    if skips() {
        return;
    }
    let serve = |mut stream: TcpStream, _| {
        while let Some(request) = head(&mut stream) {
            let is_last = request.starts_with("GET /last ");
            thread::sleep(Duration::from_millis(if is_last { 300 } else { 100 }));
            stream.write_all(&with_length(b"x")).unwrap();
            if is_last {
                return;
            }
        }
    };
    let (pep, origin) = before(serve, |_| {});
    let mut clients = [connect(origin), connect(origin)];
    for (client, path) in clients.iter_mut().zip(["/first", "/last"]) {
        client.write_all(get(path).as_bytes()).unwrap();
    }
    clients.iter_mut().for_each(|client| drop(answer(client)));
    thread::sleep(Duration::from_millis(100));
    // The connection that was used last would come first, and it is closed: the other one serves.
    clients[0].write_all(get("/again").as_bytes()).unwrap();
    answer(&mut clients[0]);
    assert_eq!(pep.ground.stop()["opened"], 2);
    let records = pep.folder.records("ground");
    let connections = records["connections"].as_array().unwrap();
    let is_open = |each: &&serde_json::Value| each["direction"] == "opened" && each["closed"].is_null();
    assert_eq!(connections.iter().filter(is_open).count(), 1);
}

#[test]
fn both_ends_of_a_classs_connections_carry_its_code_point() {
    if skips() {
        return;
    }
    let classes = json!([{"dscp": 46, "share": 70.0}, {"dscp": 10, "share": 30.0}]);
    let (pep, origin) = before(answering(|_| with_length(b"x")), |run| {
        run["proxies"][0]["classes"] = classes.clone();
        run["hosts"][0]["dscp"] = 10.into();
    });
    let mut client = connect(origin);
    client.write_all(get("/").as_bytes()).unwrap();
    assert_eq!(answer(&mut client).1, b"x");
    let port = link_port(&pep);
    for side in [&pep.remote, &pep.ground] {
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut seen = marks(side.pid(), port);
        while seen.len() < 6 && Instant::now() < deadline {
            seen = marks(side.pid(), port);
        }
        seen.sort_unstable();
        assert_eq!(seen, [10 << 2, 10 << 2, 10 << 2, 46 << 2, 46 << 2, 46 << 2]);
    }
}

/// `IP_TOS` of a process's connections whose one end has this port.
fn marks(pid: libc::pid_t, port: u16) -> Vec<libc::c_int> {
    let process = descriptor(libc::SYS_pidfd_open, [pid.into(), 0, 0]).unwrap();
    let mut marks = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
        let number = entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
        let copy = descriptor(libc::SYS_pidfd_getfd, [process.as_raw_fd().into(), number, 0]);
        let Some(copy) = copy else { continue };
        let stream = socket2::SockRef::from(&copy);
        let ends = [stream.local_addr(), stream.peer_addr()];
        let ports = ends.map(|end| Some(end.ok()?.as_socket()?.port()));
        // A listening socket has one end.
        if ports.iter().all(Option::is_some) && ports.contains(&Some(port)) {
            marks.push((ports, stream.tos_v4().unwrap() as libc::c_int));
        }
    }
    marks.sort_unstable();
    // The records keep a second descriptor of each connection.
    marks.dedup();
    marks.into_iter().map(|(_, mark)| mark).collect()
}

/// Makes a system call that returns a descriptor.
fn descriptor(call: libc::c_long, arguments: [libc::c_long; 3]) -> Option<OwnedFd> {
    let [first, second, third] = arguments;
    // SAFETY: the arguments are plain numbers.
    let number = unsafe { libc::syscall(call, first, second, third) };
    // SAFETY: the descriptor is new and has no other owner.
    (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number as RawFd) })
}
