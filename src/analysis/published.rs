//! What can be said of numbers somebody published as low, high and average only.

/// The three values behind low, high and average of a sample of three: `3 average - low - high` is the middle one.
///
/// Exact up to the rounding of the average. `None` when the middle would lie outside, so that the numbers contradict
/// each other.
pub fn three_values(low: f64, high: f64, average: f64) -> Option<[f64; 3]> {
    let middle = 3.0 * average - low - high;
    let slack = 1e-4 * high.abs().max(low.abs());
    let inside = low <= high && middle >= low - slack && middle <= high + slack;
    inside.then(|| [low, middle.clamp(low, high), high])
}

/// Bounds of the standard deviation (n - 1) of a sample of `n` with that low, high and average.
///
/// Smallest when the other n - 2 values are equal, largest when they sit at the extremes, one of them between. `None`
/// below three values or when no sample has such numbers.
pub fn sd_bounds(n: u32, low: f64, high: f64, average: f64) -> Option<(f64, f64)> {
    let others = f64::from(n.checked_sub(2).filter(|others| *others > 0)?);
    let rest = f64::from(n) * average - low - high;
    if !(low < high && rest >= others * low && rest <= others * high) {
        return None;
    }
    let square = |value: f64| (value - average).powi(2);
    let ends = square(low) + square(high);
    let at_high = ((rest - others * low) / (high - low)).floor().min(others);
    let at_low = (others - at_high - 1.0).max(0.0);
    let between = if at_high < others { square(rest - at_high * high - at_low * low) } else { 0.0 };
    let sd = |squares: f64| (squares / f64::from(n - 1)).sqrt();
    Some((
        sd(ends + others * square(rest / others)),
        sd(ends + at_high * square(high) + at_low * square(low) + between),
    ))
}
