//! temporary
/// temporary
pub fn write_line(out: &mut Vec<u8>, frame: &impl serde::Serialize) {
    serde_json::to_writer(&mut *out, frame).expect("encode");
    out.push(b'\n');
}
