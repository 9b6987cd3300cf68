//! The recorded responses, in memory and ready to be sent.

use crate::Failure;
use crate::headers::{BadHeader, Fields};
use crate::matching::{Index, Target};
use crate::ranges::ContentRange;
use bytes::Bytes;
use http::StatusCode;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;
use wirepaint_run::Response;

/// Longest think time that is accepted, nanoseconds.
const LONGEST_THINK_NS: u64 = 3_600_000_000_000;

/// One recorded response.
pub struct Recorded {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub fields: Rc<Fields>,
    /// Range of the body in the whole, for a 206 whose header agrees with its body.
    pub part: Option<ContentRange>,
    /// The body as sent, after content-encoding.
    pub body: Bytes,
    /// Nanoseconds between the request's last byte and the response's first.
    pub think_ns: u64,
}

/// All recorded responses and their index.
pub struct Recording {
    /// In order of recording.
    pub responses: Vec<Recorded>,
    /// By method and address.
    pub index: Index,
}

impl Recording {
    /// Reads every body (each file once) and checks every response; `path` is the run description,
    /// for errors.
    pub fn load(path: &Path, site: &str, responses: &[Response]) -> Result<Recording, Failure> {
        let now = SystemTime::now();
        let mut bodies: HashMap<&PathBuf, (Bytes, String)> = HashMap::new();
        let mut recording =
            Recording { responses: Vec::with_capacity(responses.len()), index: Index::default() };
        for (i, response) in responses.iter().enumerate() {
            let refuse = |key: &str, found: String, accepted: &'static str| Failure::Value {
                path: path.to_owned(),
                key: format!("sites.{site}.responses[{i}].{key}"),
                found,
                accepted,
            };
            let target = Target::parse(&response.url).ok_or_else(|| {
                refuse("url", format!("{:?}", response.url), "an absolute http or https address")
            })?;
            if http::Method::from_bytes(response.method.as_bytes()).is_err() {
                return Err(refuse("method", format!("{:?}", response.method), "an HTTP method"));
            }
            let status = StatusCode::from_u16(response.status)
                .ok()
                .filter(|status| (200..600).contains(&status.as_u16()))
                .ok_or_else(|| refuse("status", response.status.to_string(), "200 to 599"))?;
            let fields = Fields::new(&response.headers, now).map_err(|BadHeader(found)| {
                refuse("headers", found, "a token and a value without control characters")
            })?;
            if response.think_ns > LONGEST_THINK_NS {
                return Err(refuse(
                    "think_ns",
                    response.think_ns.to_string(),
                    "at most an hour, 3600000000000",
                ));
            }
            let (body, found) = match &response.body {
                None => (Bytes::new(), String::new()),
                Some(file) => match bodies.get(file) {
                    Some(known) => known.clone(),
                    None => {
                        let body = std::fs::read(file).map(Bytes::from).map_err(|error| {
                            refuse("body", format!("{} ({error})", file.display()), "a readable file")
                        })?;
                        let found = hexadecimal(&Sha256::digest(&body));
                        bodies.insert(file, (body.clone(), found.clone()));
                        (body, found)
                    }
                },
            };
            if let Some(asked) = response.body_sha256.as_ref().filter(|asked| **asked != found) {
                let file = response.body.as_deref().unwrap_or(Path::new("no body")).display();
                let found = format!("{file} with SHA-256 {found} for {asked}");
                return Err(refuse("body", found, "a file with the SHA-256 that body_sha256 names"));
            }
            let part =
                fields.content_range.as_deref().and_then(ContentRange::parse).filter(|part| {
                    status == StatusCode::PARTIAL_CONTENT && part.length() == body.len() as u64
                });
            recording.index.add(&response.method, &target, i);
            for pattern in &response.patterns {
                let pattern = Target::parse(pattern).ok_or_else(|| {
                    refuse("patterns", format!("{pattern:?}"), "an absolute http or https address, with *")
                })?;
                recording.index.add_pattern(&response.method, &pattern, i);
            }
            let fields = Rc::new(fields);
            recording.responses.push(Recorded { status, fields, part, body, think_ns: response.think_ns });
        }
        Ok(recording)
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(url: &str, status: u16) -> Response {
        Response {
            method: "GET".to_owned(),
            url: url.to_owned(),
            patterns: vec![],
            status,
            headers: vec![],
            body: None,
            body_sha256: None,
            think_ns: 0,
        }
    }

    fn refusal(response: Response) -> String {
        match Recording::load(Path::new("run.json"), "a", &[response]) {
            Ok(_) => panic!("accepted"),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn a_refusal_names_file_key_and_what_is_accepted() {
        assert_eq!(
            refusal(response("about:blank", 200)),
            "run.json: sites.a.responses[0].url: found \"about:blank\", accepted: an absolute http or https address"
        );
        assert_eq!(
            refusal(response("http://a/", 0)),
            "run.json: sites.a.responses[0].status: found 0, accepted: 200 to 599"
        );
        assert_eq!(
            refusal(response("http://a/", 101)),
            "run.json: sites.a.responses[0].status: found 101, accepted: 200 to 599"
        );
        let missing = Response { body: Some("/nonexistent/body".into()), ..response("http://a/", 200) };
        assert!(
            refusal(missing).starts_with("run.json: sites.a.responses[0].body: found /nonexistent/body (")
        );
        let file = std::env::temp_dir().join(format!("wirepaint-recording-{}", std::process::id()));
        std::fs::write(&file, b"a").unwrap();
        let named = |body_sha256| Response {
            body: Some(file.clone()),
            body_sha256: Some(body_sha256),
            ..response("http://a/", 200)
        };
        let right = hexadecimal(&Sha256::digest(b"a"));
        assert!(Recording::load(Path::new("run.json"), "a", &[named(right)]).is_ok());
        let other = refusal(named("0".repeat(64)));
        assert!(other.starts_with("run.json: sites.a.responses[0].body: found "), "{other}");
        assert!(other.ends_with("accepted: a file with the SHA-256 that body_sha256 names"), "{other}");
        std::fs::remove_file(&file).unwrap();
        let header = Response { headers: vec![("a\r\nb".into(), "c".into())], ..response("http://a/", 200) };
        assert!(refusal(header).contains("sites.a.responses[0].headers: found \"a\\r\\nb\": \"c\""));
    }
}
