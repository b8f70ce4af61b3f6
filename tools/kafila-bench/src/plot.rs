//! Plots of series over time, as SVG.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 30.0;
const COLOURS: [&str; 10] = [
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f",
    "#bcbd22", "#17becf",
];

/// A named series of (seconds, value).
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Draws the series as lines over one axis of time.
pub(crate) fn svg(title: &str, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|series| &series.points);
    let end = points().map(|point| point.0).fold(1.0, f64::max);
    let top = points().map(|point| point.1).fold(0.0, f64::max);
    let top = if top > 0.0 { top } else { 1.0 };
    let x = |seconds: f64| LEFT + seconds / end * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"18\" font-size=\"13\">{}</text>\n",
        escaped(title)
    );
    for quarter in 0..=4 {
        let value = top * f64::from(quarter) / 4.0;
        let (at, from, to) = (y(value), LEFT, WIDTH - RIGHT);
        let _ = writeln!(
            out,
            "<path d=\"M{from} {at:.1}H{to}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            at + 4.0,
            label(value)
        );
        let seconds = end * f64::from(quarter) / 4.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} s</text>",
            x(seconds),
            HEIGHT - 10.0,
            label(seconds)
        );
    }
    for (position, series) in series.iter().enumerate() {
        let colour = COLOURS[position % COLOURS.len()];
        let points = series.points.iter();
        let points = points.map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1)));
        let points: Vec<String> = points.collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            points.join(" ")
        );
        let row = TOP + 14.0 * f64::from(u32::try_from(position).unwrap_or(u32::MAX));
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>",
            WIDTH - RIGHT + 10.0,
            row + 4.0,
            escaped(&series.name)
        );
    }
    out.push_str("</svg>\n");
    out
}

fn label(value: f64) -> String {
    if value >= 10_000.0 {
        format!("{:.0}k", value / 1_000.0)
    } else if value >= 10.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_point_touches_the_top_and_names_are_escaped() {
        let series = Series {
            name: "a<b".to_owned(),
            points: vec![(0.0, 0.0), (10.0, 50.0)],
        };
        let svg = svg("t", &[series]);
        assert!(svg.contains("points=\"70.0,290.0 550.0,30.0\""), "{svg}");
        assert!(svg.contains("a&lt;b"), "{svg}");
    }

    #[test]
    fn nothing_to_draw_is_still_a_picture() {
        let svg = svg("t", &[]);
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{svg}");
    }
}
