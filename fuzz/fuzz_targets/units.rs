#![no_main]
//! Unit files and environment files that a user wrote.

use fleet_update::fleet::units::files;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let names = files::Names {
        unit: text.lines().next().unwrap_or_default().to_owned(),
        home: "/home/ann".into(),
        user: "ann".into(),
        uid: 1000,
    };
    for entry in files::parse(text) {
        for command in files::commands(&entry.value, &names) {
            assert!(!command.is_empty());
        }
        let words = files::words(&entry.value);
        assert!(words.iter().map(String::len).sum::<usize>() <= 4 * entry.value.len());
    }
    for (name, _) in files::assignments(text) {
        assert!(!name.contains('\n') || text.contains('\n'));
    }
    let stem = files::stem(&names.unit);
    assert!(names.unit.starts_with(stem));
    if let Some(template) = files::template(&names.unit) {
        assert!(template.contains('@'));
    }
    for folder in files::drop_in_folders(&names.unit) {
        assert!(folder.ends_with(".d"));
    }
});
