//! Plot of used nodes as jobs come and go, as SVG.

use std::fmt::Write as _;

use crate::range::range;

/// The data of one trace on one cluster.
pub(crate) struct Panel {
    pub(crate) name: String,
    /// Seed → event → counts.
    pub(crate) runs: Vec<Vec<[usize; LINES.len()]>>,
}

const WIDTH: usize = 330;
const HEIGHT: usize = 190;
const LEFT: usize = 56;
const TOP: usize = 84;
const GAP_X: usize = 30;
const GAP_Y: usize = 56;
const COLUMNS: usize = 2;
/// Points of a line.
const POINTS: usize = 60;
/// The most that is drawn.
const NODES: usize = 500;
/// Name, colour (told apart by colour-blind people, too) and dashes, in the order of the counts.
/// Source of the colours: Okabe and Ito's palette.
const LINES: [(&str, &str, &str); 4] = [
    ("lower bound", "#000000", "4 3"),
    ("every node scored", "#0072b2", ""),
    ("sampling, by job type", "#e69f00", ""),
    ("two candidates", "#d55e00", "8 3"),
];

pub(crate) fn svg(panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(COLUMNS);
    let width = LEFT + COLUMNS * (WIDTH + GAP_X);
    let height = TOP + rows * (HEIGHT + GAP_Y) + 10;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    text(
        &mut svg,
        (LEFT, 22),
        "start",
        15,
        "Nodes in use as jobs come and go, a node counting by its size",
    );
    let note = "median of the seeds; shaded from the least to the greatest";
    text(&mut svg, (LEFT, 40), "start", 11, note);
    legend(&mut svg);
    for (number, panel) in panels.iter().enumerate() {
        let x = LEFT + number % COLUMNS * (WIDTH + GAP_X);
        let y = TOP + number / COLUMNS * (HEIGHT + GAP_Y) + 10;
        axes(&mut svg, panel, x, y);
        // The bound is drawn last, so that it is seen where others come close.
        for line in (0..LINES.len()).rev() {
            draw(&mut svg, panel, line, x, y);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn text(svg: &mut String, at: (usize, usize), anchor: &str, size: usize, what: &str) {
    let (x, y) = at;
    writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{what}</text>"
    )
    .expect("a string takes everything");
}

fn legend(svg: &mut String) {
    for (number, (name, colour, dashes)) in LINES.iter().enumerate() {
        let x = LEFT + number * 168;
        writeln!(
            svg,
            "<path d=\"M{x} 58h24\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dashes}\"/>"
        )
        .expect("a string takes everything");
        text(svg, (x + 30, 62), "start", 12, name);
    }
}

fn axes(svg: &mut String, panel: &Panel, x: usize, y: usize) {
    text(svg, (x, y - 6), "start", 12, &panel.name);
    for nodes in (0..=NODES).step_by(100) {
        let line = y + HEIGHT - nodes * HEIGHT / NODES;
        writeln!(
            svg,
            "<path d=\"M{x} {line}h{WIDTH}\" stroke=\"#ddd\" stroke-width=\"1\"/>"
        )
        .expect("a string takes everything");
        text(svg, (x - 6, line + 4), "end", 10, &nodes.to_string());
    }
    let events = panel.runs.first().map_or(0, Vec::len);
    for quarter in 0..=4 {
        let at = (x + WIDTH * quarter / 4, y + HEIGHT + 14);
        text(svg, at, "middle", 10, &(events * quarter / 4).to_string());
    }
    let at = (x + WIDTH / 2, y + HEIGHT + 28);
    text(svg, at, "middle", 10, "arrivals and departures");
    let (label_x, label_y) = (x - 36, y + HEIGHT / 2);
    writeln!(
        svg,
        "<text x=\"{label_x}\" y=\"{label_y}\" text-anchor=\"middle\" font-size=\"10\" \
         transform=\"rotate(-90 {label_x} {label_y})\">nodes</text>"
    )
    .expect("a string takes everything");
}

fn draw(svg: &mut String, panel: &Panel, line: usize, x: usize, y: usize) {
    let events = panel.runs.first().map_or(0, Vec::len);
    let (_, colour, dashes) = LINES[line];
    let (mut upper, mut lower, mut middle) = (Vec::new(), Vec::new(), Vec::new());
    for point in 0..=POINTS {
        let event = (events * point / POINTS).max(1) - 1;
        let all = range(panel.runs.iter().map(|run| run[event][line]));
        let across = x + WIDTH * point / POINTS;
        let [least, median, most] = all.map(|nodes| height(y, nodes));
        lower.push(format!("{across} {least}"));
        middle.push(format!("{across} {median}"));
        upper.push(format!("{across} {most}"));
    }
    lower.reverse();
    // The bound is all but the same for all seeds.
    let opacity = if line == 0 { 0.0 } else { 0.15 };
    writeln!(
        svg,
        "<path d=\"M{}L{}Z\" fill=\"{colour}\" fill-opacity=\"{opacity}\"/>\n\
         <path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\" \
         stroke-dasharray=\"{dashes}\"/>",
        upper.join("L"),
        lower.join("L"),
        middle.join("L"),
    )
    .expect("a string takes everything");
}

/// Returns where so many nodes are drawn, to a tenth.
fn height(y: usize, nodes: usize) -> String {
    let tenths = (y + HEIGHT) * 10 - nodes * HEIGHT * 10 / NODES;
    format!("{}.{}", tenths / 10, tenths % 10)
}
