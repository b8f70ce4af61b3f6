//! Diffs between two versions of a job: marked lines, indented by block.

use proto::v1::{DiffType, FieldDiff, JobDiff, ObjectDiff, TaskDiff, TaskGroupDiff};

use super::{Style, sorted};
use crate::output::colour::Colour;
use crate::output::printable;

/// Indentation of each level.
const STEP: usize = 2;

/// Returns the diff of a job. Added and removed objects show only their name, unless `style` is
/// verbose.
pub(crate) fn job(diff: &JobDiff, style: &Style) -> String {
    let mut text = Text {
        colour: style.colour,
        lines: Vec::new(),
    };
    let mark = Mark::of(diff.r#type());
    text.line(0, mark, mark.width(), &text.titled("Job", &diff.id, &[]));
    let groups = diff.task_groups.iter().map(TaskGroupDiff::r#type);
    let (fields, objects) = details(diff.r#type(), &diff.fields, &diff.objects, style.verbose);
    let width = width(fields, objects, groups);
    text.fields(0, width, fields);
    text.objects(0, width, objects);
    for one in &diff.task_groups {
        group(&mut text, one, width, style.verbose);
    }
    text.lines.push(String::new());
    text.lines.join("\n")
}

fn group(text: &mut Text, diff: &TaskGroupDiff, outer: usize, verbose: bool) {
    let updates = sorted(&diff.updates).into_iter();
    let updates: Vec<String> = updates
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    let title = text.titled("Task Group", &diff.name, &updates);
    text.line(0, Mark::of(diff.r#type()), outer, &title);
    let tasks = diff.tasks.iter().map(TaskDiff::r#type);
    let (fields, objects) = details(diff.r#type(), &diff.fields, &diff.objects, verbose);
    let mark = Mark::of(diff.r#type());
    let width = mark.inner(outer, width(fields, objects, tasks));
    text.fields(STEP, width, fields);
    text.objects(STEP, width, objects);
    for one in &diff.tasks {
        task(text, one, width, verbose);
    }
}

fn task(text: &mut Text, diff: &TaskDiff, outer: usize, verbose: bool) {
    let title = text.titled("Task", &diff.name, &diff.annotations);
    text.line(STEP, Mark::of(diff.r#type()), outer, &title);
    let (fields, objects) = details(diff.r#type(), &diff.fields, &diff.objects, verbose);
    let mark = Mark::of(diff.r#type());
    let width = mark.inner(outer, width(fields, objects, std::iter::empty()));
    text.fields(2 * STEP, width, fields);
    text.objects(2 * STEP, width, objects);
}

/// Returns the lines below the title of a job, group or task.
fn details<'a>(
    diff_type: DiffType,
    fields: &'a [FieldDiff],
    objects: &'a [ObjectDiff],
    verbose: bool,
) -> (&'a [FieldDiff], &'a [ObjectDiff]) {
    if diff_type == DiffType::Edited || verbose {
        (fields, objects)
    } else {
        (&[], &[])
    }
}

/// Returns the width of the widest mark among siblings.
fn width(
    fields: &[FieldDiff],
    objects: &[ObjectDiff],
    others: impl Iterator<Item = DiffType>,
) -> usize {
    let fields = fields.iter().map(FieldDiff::r#type);
    let objects = objects.iter().map(ObjectDiff::r#type);
    let all = fields.chain(objects).chain(others);
    all.map(|one| Mark::of(one).width())
        .max()
        .unwrap_or_default()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    None,
    Added,
    Deleted,
    Edited,
}

impl Mark {
    fn of(diff_type: DiffType) -> Self {
        match diff_type {
            DiffType::Unspecified | DiffType::None => Self::None,
            DiffType::Added => Self::Added,
            DiffType::Deleted => Self::Deleted,
            DiffType::Edited => Self::Edited,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Added => "+ ",
            Self::Deleted => "- ",
            Self::Edited => "+/- ",
        }
    }

    fn width(self) -> usize {
        self.as_str().len()
    }

    /// Returns the width of marks one level deeper. An object without a mark begins after the marks
    /// of its siblings, which are `outer` wide, and so do its parts.
    fn inner(self, outer: usize, width: usize) -> usize {
        match self {
            Self::None => width.max(outer),
            _ => width,
        }
    }

    fn shown(self, colour: Colour) -> String {
        match self {
            Self::None => String::new(),
            Self::Added => colour.green(self.as_str()),
            Self::Deleted => colour.red(self.as_str()),
            Self::Edited => colour.yellow(self.as_str()),
        }
    }
}

/// The lines so far.
struct Text {
    colour: Colour,
    lines: Vec<String>,
}

impl Text {
    /// Adds a line: the mark at `indent`, the text after the widest mark.
    fn line(&mut self, indent: usize, mark: Mark, width: usize, said: &str) {
        self.lines.push(format!(
            "{:indent$}{}{:pad$}{said}",
            "",
            mark.shown(self.colour),
            "",
            pad = width.saturating_sub(mark.width()),
        ));
    }

    fn titled(&self, kind: &str, name: &str, remarks: &[String]) -> String {
        let title = self.colour.bold(&format!("{kind}: {}", quoted(name)));
        format!("{title}{}", bracketed(remarks))
    }

    fn fields(&mut self, indent: usize, width: usize, fields: &[FieldDiff]) {
        let names = fields
            .iter()
            .map(|field| printable(&field.name).chars().count());
        let longest = names.max().unwrap_or_default();
        for field in fields {
            let mark = Mark::of(field.r#type());
            let name = format!("{}:", printable(&field.name));
            let value = match mark {
                Mark::Added | Mark::None => quoted(&field.new),
                Mark::Deleted => quoted(&field.old),
                Mark::Edited => format!("{} => {}", quoted(&field.old), quoted(&field.new)),
            };
            let said = format!(
                "{name:columns$} {value}{}",
                bracketed(&field.annotations),
                columns = longest + 1,
            );
            self.line(indent, mark, width, &said);
        }
    }

    fn objects(&mut self, indent: usize, outer: usize, objects: &[ObjectDiff]) {
        for object in objects {
            let mark = Mark::of(object.r#type());
            self.line(
                indent,
                mark,
                outer,
                &format!("{} {{", printable(&object.name)),
            );
            let width = width(&object.fields, &object.objects, std::iter::empty());
            self.fields(indent + STEP, width, &object.fields);
            self.objects(indent + STEP, width, &object.objects);
            self.line(indent, Mark::None, outer, "}");
        }
    }
}

/// Quotes a value and escapes control characters.
fn quoted(value: &str) -> String {
    format!("{value:?}")
}

fn bracketed(remarks: &[String]) -> String {
    if remarks.is_empty() {
        return String::new();
    }
    format!(" ({})", printable(&remarks.join(", ")))
}
