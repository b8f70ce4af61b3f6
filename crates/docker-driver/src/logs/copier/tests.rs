//! Restarts at any message, repeats of the engine, and clocks that are set back.

use std::fs;
use std::path::Path;

use super::*;

const LATER: Moment = Moment {
    second: i64::MAX,
    nanosecond: 0,
};

/// Messages of one container: two of the same time, and both streams.
fn messages() -> Vec<(LogStream, Vec<u8>)> {
    let message = |stream, second: u32, text: &str| {
        let line = format!("2026-11-22T10:00:{second:02}.000000001Z {text}\n");
        (stream, line.into_bytes())
    };
    vec![
        message(LogStream::Stdout, 1, "a"),
        message(LogStream::Stdout, 2, "b"),
        message(LogStream::Stderr, 2, "E"),
        message(LogStream::Stdout, 2, "c"),
        message(LogStream::Stdout, 3, "d"),
        message(LogStream::Stderr, 4, "F"),
    ]
}

fn open(folder: &Path) -> Copier {
    let files = LogFiles {
        directory: folder.to_owned(),
        task: "web".to_owned(),
        max_files: 10,
        max_file_bytes: 5,
    };
    let file = folder.join("position");
    let stored = fs::read(&file).ok();
    let stored = stored.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut copier = Copier::open(&files, file, stored);
    copier.resume();
    copier
}

fn written(folder: &Path, stream: LogStream) -> String {
    let numbers = log_files::numbers(folder, "web", stream).unwrap();
    let files = numbers.into_iter();
    let texts = files
        .map(|number| fs::read_to_string(log_files::path(folder, "web", stream, number)).unwrap());
    texts.collect()
}

#[test]
fn an_agent_killed_at_any_message_goes_on_without_loss_or_doubles() {
    let all = messages();
    // Killed after `killed` messages, the position stored after `saved` of them, twice.
    for killed in 0..=all.len() {
        for saved in 0..=killed {
            let folder = tempfile::tempdir().unwrap();
            // Output of an earlier attempt of the task.
            fs::write(folder.path().join("web.stdout.0"), "old\n").unwrap();
            let mut copier = open(folder.path());
            copier.write(&all[..saved], LATER);
            copier.save();
            copier.write(&all[saved..killed], LATER);
            drop(copier);
            for _ in 0..2 {
                // The engine answers with everything from the second on.
                let mut copier = open(folder.path());
                copier.write(&all, LATER);
                copier.save();
            }
            let of = |stream| written(folder.path(), stream);
            assert_eq!(
                of(LogStream::Stdout),
                "old\na\nb\nc\nd\n",
                "{killed} {saved}"
            );
            assert_eq!(of(LogStream::Stderr), "E\nF\n", "{killed} {saved}");
        }
    }
}

#[test]
fn repeated_messages_are_written_once() {
    // (stream, time in nanoseconds, text) in the order of the engine → both streams as they are written.
    type Lines<'a> = &'a [(char, i32, &'a str)];
    let cases: [(&str, Lines<'_>, &str, &str); 9] = [
        (
            "older ones, then new ones",
            &[
                ('o', 1, "a\n"),
                ('o', 2, "b\n"),
                ('o', 1, "a\n"),
                ('o', 2, "b\n"),
                ('o', 3, "c\n"),
            ],
            "a\nb\nc\n",
            "",
        ),
        (
            "twice",
            &[
                ('o', 1, "a\n"),
                ('o', 2, "b\n"),
                ('o', 1, "a\n"),
                ('o', 2, "b\n"),
                ('o', 1, "a\n"),
                ('o', 2, "b\n"),
            ],
            "a\nb\n",
            "",
        ),
        (
            "the last one alone",
            &[
                ('o', 1, "a\n"),
                ('o', 2, "b\n"),
                ('o', 2, "b\n"),
                ('o', 3, "c\n"),
            ],
            "a\nb\nc\n",
            "",
        ),
        (
            "the parts of a line have one time",
            &[
                ('o', 2, "a"),
                ('o', 2, "b\n"),
                ('o', 2, "a"),
                ('o', 2, "b\n"),
                ('o', 3, "c\n"),
            ],
            "ab\nc\n",
            "",
        ),
        (
            "equal parts of a line are no repeat",
            &[
                ('o', 1, "a"),
                ('o', 1, "a"),
                ('o', 1, "a\n"),
                ('o', 2, "b\n"),
            ],
            "aaa\nb\n",
            "",
        ),
        (
            "other lines of the same time are no repeat",
            &[('o', 1, "a\n"), ('o', 1, "b\n")],
            "a\nb\n",
            "",
        ),
        (
            "nor are equal ones of a whole second",
            &[('o', 0, "a\n"), ('o', 0, "a\n")],
            "a\na\n",
            "",
        ),
        (
            "the streams are not ordered among each other",
            &[
                ('o', 5, "a\n"),
                ('e', 3, "E\n"),
                ('o', 6, "b\n"),
                ('e', 4, "F\n"),
            ],
            "a\nb\n",
            "E\nF\n",
        ),
        (
            "both streams",
            &[
                ('o', 1, "a\n"),
                ('e', 2, "E\n"),
                ('o', 3, "b\n"),
                ('o', 1, "a\n"),
                ('e', 2, "E\n"),
                ('o', 3, "b\n"),
                ('e', 4, "F\n"),
            ],
            "a\nb\n",
            "E\nF\n",
        ),
    ];
    for (name, lines, stdout, stderr) in cases {
        let folder = tempfile::tempdir().unwrap();
        let mut copier = open(folder.path());
        for (stream, nanosecond, text) in lines {
            let stream = match stream {
                'o' => LogStream::Stdout,
                _ => LogStream::Stderr,
            };
            let line = format!("2026-11-22T10:00:00.{nanosecond:09}Z {text}");
            copier.write(&[(stream, line.into_bytes())], LATER);
        }
        assert_eq!(written(folder.path(), LogStream::Stdout), stdout, "{name}");
        assert_eq!(written(folder.path(), LogStream::Stderr), stderr, "{name}");
    }
}

#[test]
fn an_answer_without_the_last_known_message_has_a_gap() {
    let all = messages();
    let folder = tempfile::tempdir().unwrap();
    let mut copier = open(folder.path());
    copier.write(&all[..2], LATER);
    assert!(!copier.take_gap(), "nothing was known");
    // Nor has an answer that begins with the last known message, or before it.
    for begin in [1, 0] {
        copier.resume();
        copier.write(&all[begin..4], LATER);
        assert!(!copier.take_gap(), "{begin}");
    }
    copier.resume();
    copier.write(&all[5..], LATER);
    assert!(copier.take_gap());
    assert!(!copier.take_gap(), "it is told once");
    let of = |stream| written(folder.path(), stream);
    assert_eq!(
        (of(LogStream::Stdout), of(LogStream::Stderr)),
        ("a\nb\nc\n".into(), "E\nF\n".into())
    );
}

#[test]
fn messages_after_the_clock_was_set_back_are_new() {
    let folder = tempfile::tempdir().unwrap();
    let mut copier = open(folder.path());
    let line = |second: i32, text: &str| {
        let line = format!("2026-11-22T10:00:{second:02}Z {text}");
        vec![(LogStream::Stdout, line.into_bytes())]
    };
    let at = |second: i32| moment(&format!("2026-11-22T10:00:{second:02}Z")).unwrap();
    copier.write(&line(30, "a"), at(30));
    copier.write(&line(10, "b"), at(10));
    copier.write(&line(11, "c"), at(11));
    // A repeat among them.
    copier.write(&line(10, "b"), at(12));
    assert_eq!(written(folder.path(), LogStream::Stdout), "abc");
}

#[test]
fn a_position_of_an_earlier_version_is_read() {
    let text = r#"{"at":{"second":9,"nanosecond":1},"count":2,
        "files":[{"number":1,"bytes":2},{"number":0,"bytes":0}]}"#;
    let read: Position = serde_json::from_str(text).unwrap();
    let last = Last {
        at: Some(Moment {
            second: 9,
            nanosecond: 1,
        }),
        count: 2,
    };
    assert_eq!(read.last, [last; 2]);
    let text = serde_json::to_string(&read).unwrap();
    assert_eq!(serde_json::from_str::<Position>(&text).unwrap(), read);
}

#[test]
fn both_streams_have_a_file_before_their_output() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path());
    for file in ["web.stdout.0", "web.stderr.0"] {
        assert_eq!(fs::read_to_string(folder.path().join(file)).unwrap(), "");
    }
}

#[test]
fn the_log_is_requested_from_the_second_before_the_last_message() {
    let folder = tempfile::tempdir().unwrap();
    let mut copier = open(folder.path());
    assert_eq!(copier.resume(), 0);
    copier.write(&messages()[..1], LATER);
    let second = moment("2026-11-22T10:00:01Z").unwrap().second;
    assert_eq!(i64::from(copier.resume()), second - 1);
}

#[test]
fn a_message_without_a_time_is_text() {
    assert_eq!(split(b"hello world"), (None, &b"hello world"[..]));
    assert_eq!(split(b"hello"), (None, &b"hello"[..]));
    let (at, text) = split(b"2026-11-22T10:00:01.5+02:00 x y");
    assert_eq!(at, moment("2026-11-22T08:00:01.5Z"));
    assert_eq!(text, b"x y");
}
