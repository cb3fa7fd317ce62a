# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_update_global_optspecs
    string join \n app= home= user= profile= state-dir= config= format= json q/quiet v/verbose color= h/help help-all to= restart= no-migrate native-migrate jobs= max-failures= deadline= lock-timeout= request-id= keep= trigger= metrics-file= dry-run V/version
end

function __fish_update_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_update_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_update_using_subcommand
    set -l cmd (__fish_update_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c update -n "__fish_update_needs_command" -l app -d 'Application' -r
complete -c update -n "__fish_update_needs_command" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_needs_command" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_needs_command" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_needs_command" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_needs_command" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_needs_command" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_needs_command" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_needs_command" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_needs_command" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_needs_command" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_needs_command" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_needs_command" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_needs_command" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_needs_command" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_needs_command" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_needs_command" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_needs_command" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_needs_command" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_needs_command" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_needs_command" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_needs_command" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_needs_command" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_needs_command" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_needs_command" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_needs_command" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_needs_command" -s V -l version -d 'Print version'
complete -c update -n "__fish_update_needs_command" -f -a "apply" -d 'Do it: migrate, restart, verify, write the receipt (what `update` alone does)'
complete -c update -n "__fish_update_needs_command" -f -a "plan" -d 'Show what a run would do, and why; changes nothing'
complete -c update -n "__fish_update_needs_command" -f -a "status" -d 'Show the fleet as it is: who runs what, for whom, and what is stale'
complete -c update -n "__fish_update_needs_command" -f -a "receipt" -d 'Show and check the records of earlier runs (`update receipt show`)'
complete -c update -n "__fish_update_needs_command" -f -a "rollback" -d 'Put back what a run wrote over, if nobody changed it since; databases are never rolled back'
complete -c update -n "__fish_update_needs_command" -f -a "audit" -d 'Prove the audit chain, or write it out'
complete -c update -n "__fish_update_needs_command" -f -a "cell" -d 'Keep the registry of managed root homes'
complete -c update -n "__fish_update_needs_command" -f -a "mechanisms" -d 'Show how each kind of runtime is restarted'
complete -c update -n "__fish_update_needs_command" -f -a "migrations" -d 'Show the migrations of the application, and what they would change'
complete -c update -n "__fish_update_needs_command" -f -a "rehearse" -d 'Do the whole run on synthetic homes in a temporary folder, then remove them'
complete -c update -n "__fish_update_using_subcommand apply" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand apply" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand apply" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand apply" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand apply" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand apply" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand apply" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand apply" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand apply" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand apply" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand apply" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand apply" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand apply" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand apply" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand apply" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand apply" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand apply" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand apply" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand apply" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand apply" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand apply" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand apply" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand apply" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand apply" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand apply" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand apply" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand plan" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand plan" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand plan" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand plan" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand plan" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand plan" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand plan" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand plan" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand plan" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand plan" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand plan" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand plan" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand plan" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand plan" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand plan" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand plan" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand plan" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand plan" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand plan" -l check -d 'End with 5 if a run would change something, else with 1 if a row could not be clean'
complete -c update -n "__fish_update_using_subcommand plan" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand plan" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand plan" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand plan" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand plan" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand plan" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand plan" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand plan" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand status" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand status" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand status" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand status" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand status" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand status" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand status" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand status" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand status" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand status" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand status" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand status" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand status" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand status" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand status" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand status" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand status" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand status" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand status" -l watch -d 'Look again each second until Ctrl-C; only on a terminal, and only as text'
complete -c update -n "__fish_update_using_subcommand status" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand status" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand status" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand status" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand status" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand status" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand status" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand status" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -f -a "show" -d 'Show a receipt'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -f -a "list" -d 'List the runs that left one'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -f -a "verify" -d 'Prove that no receipt was changed or taken away, by their chain and the audit chain'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -f -a "schema" -d 'Print the JSON Schema of a receipt'
complete -c update -n "__fish_update_using_subcommand receipt; and not __fish_seen_subcommand_from show list verify schema merge" -f -a "merge" -d 'Make one receipt of a fleet from those of its machines; ends with 1 if one of them is missing'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l html -d 'Write it as one self-contained web page' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from list" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from verify" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from schema" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l inventory -d 'The machines that must be there: one name a line, or an inventory of Ansible (INI or JSON)' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l max-age -d 'A receipt of a run that began longer ago proves nothing' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l html -d 'Write it as one self-contained web page, too' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from merge" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand rollback" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand rollback" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand rollback" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand rollback" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand rollback" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand rollback" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand rollback" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand rollback" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand rollback" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand rollback" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand rollback" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand rollback" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand rollback" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand rollback" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand rollback" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand rollback" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand rollback" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand rollback" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand rollback" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand rollback" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand rollback" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand rollback" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand rollback" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand rollback" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand rollback" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand rollback" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -f -a "verify" -d 'Walk the chain from its beginning to its end'
complete -c update -n "__fish_update_using_subcommand audit; and not __fish_seen_subcommand_from verify export" -f -a "export" -d 'Write the chain to standard output, one event a line'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l file -d 'An exported copy, instead of our own chain' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from verify" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand audit; and __fish_seen_subcommand_from export" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -f -a "create" -d 'Make a tenant\'s cell'
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -f -a "status" -d 'Show a tenant\'s cell'
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -f -a "transition" -d 'Move a tenant\'s cell to another state'
complete -c update -n "__fish_update_using_subcommand cell; and not __fish_seen_subcommand_from create status transition list" -f -a "list" -d 'List every cell'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l release -d 'The release that it runs' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l config-digest -d 'SHA-256 of its configuration' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from create" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from status" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from transition" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand cell; and __fish_seen_subcommand_from list" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand mechanisms" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand mechanisms" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand mechanisms" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand mechanisms" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand mechanisms" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand mechanisms" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand mechanisms" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand mechanisms" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand mechanisms" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand mechanisms" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand mechanisms" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand mechanisms" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand mechanisms" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand mechanisms" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand mechanisms" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand mechanisms" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand mechanisms" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand mechanisms" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand mechanisms" -l explain -d 'For each runtime, why its row was chosen and which rows did not match'
complete -c update -n "__fish_update_using_subcommand mechanisms" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand mechanisms" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand mechanisms" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand mechanisms" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand mechanisms" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand mechanisms" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand mechanisms" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand mechanisms" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -f -a "list" -d 'List them'
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -f -a "show" -d 'Show one'
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -f -a "diff" -d 'Show what a run would change in each home, as a diff with secrets masked'
complete -c update -n "__fish_update_using_subcommand migrations; and not __fish_seen_subcommand_from list show diff lint" -f -a "lint" -d 'Prove a catalog: numbers, overlaps, unknown keys, cases, checksums'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from list" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from diff" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from lint" -l dry-run -d 'The same as `update plan`'
complete -c update -n "__fish_update_using_subcommand rehearse" -l app -d 'Application' -r
complete -c update -n "__fish_update_using_subcommand rehearse" -l home -d 'Only this home (may be repeated)' -r -F
complete -c update -n "__fish_update_using_subcommand rehearse" -l user -d 'Only this user\'s homes, as root (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand rehearse" -l profile -d 'Only this profile (may be repeated)' -r
complete -c update -n "__fish_update_using_subcommand rehearse" -l state-dir -d 'Where receipts and snapshots are kept' -r -F
complete -c update -n "__fish_update_using_subcommand rehearse" -l config -d 'Read this configuration file alone' -r -F
complete -c update -n "__fish_update_using_subcommand rehearse" -l format -d 'How results are written' -r -f -a "text\t'For a person'
json\t'One JSON document'
yaml\t'One YAML document'"
complete -c update -n "__fish_update_using_subcommand rehearse" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless the environment says otherwise'
always\t'Always'
never\t'Never'"
complete -c update -n "__fish_update_using_subcommand rehearse" -l to -d 'Version for homes whose installs do not say one' -r
complete -c update -n "__fish_update_using_subcommand rehearse" -l restart -d 'Which runtimes to restart: stale, always or never [default: stale]' -r -f -a "stale\t'Those that still serve an old state'
always\t'All that run'
never\t'None; stale ones are reported'"
complete -c update -n "__fish_update_using_subcommand rehearse" -l jobs -d 'How many restarts run side by side [default: 8]' -r
complete -c update -n "__fish_update_using_subcommand rehearse" -l max-failures -d 'How many failures end the restarts of one install, after the first wave [default: 3]' -r
complete -c update -n "__fish_update_using_subcommand rehearse" -l deadline -d 'How long the whole run may take [default: 30m]' -r
complete -c update -n "__fish_update_using_subcommand rehearse" -l lock-timeout -d 'How long to wait for another run [default: 0, with --trigger cron 10m]' -r
complete -c update -n "__fish_update_using_subcommand rehearse" -l request-id -d 'Name of this run: the same name again gives its receipt again, and does nothing twice' -r
complete -c update -n "__fish_update_using_subcommand rehearse" -l keep -d 'How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]' -r
complete -c update -n "__fish_update_using_subcommand rehearse" -l trigger -d 'What starts the run [default: cron where cron does, else manual]' -r -f -a "manual\t'A person'
cron\t'A timer or cron'
package\t'A package\'s post-installation hook'"
complete -c update -n "__fish_update_using_subcommand rehearse" -l metrics-file -d 'Write the result as metrics for the textfile collector of Prometheus' -r -F
complete -c update -n "__fish_update_using_subcommand rehearse" -l json -d 'The same as --format json'
complete -c update -n "__fish_update_using_subcommand rehearse" -s q -l quiet -d 'Say nothing when all is clean'
complete -c update -n "__fish_update_using_subcommand rehearse" -s v -l verbose -d 'Say more'
complete -c update -n "__fish_update_using_subcommand rehearse" -s h -l help -d 'Print help'
complete -c update -n "__fish_update_using_subcommand rehearse" -l help-all -d 'Print help with every option'
complete -c update -n "__fish_update_using_subcommand rehearse" -l no-migrate -d 'Leave every home as it is'
complete -c update -n "__fish_update_using_subcommand rehearse" -l native-migrate -d 'Let the application\'s own migrator bring a copy of a home to versions that are not known here'
complete -c update -n "__fish_update_using_subcommand rehearse" -l dry-run -d 'The same as `update plan`'
complete -c update -l profile -x -a "(update complete profile 2>/dev/null)"
complete -c update -l user -x -a "(update complete user 2>/dev/null)"
complete -c update -n "__fish_update_using_subcommand receipt; and __fish_seen_subcommand_from show" -f -a "(update complete run 2>/dev/null)"
complete -c update -n "__fish_update_using_subcommand rollback" -f -a "(update complete run 2>/dev/null)"
complete -c update -n "__fish_update_using_subcommand mechanisms" -f -a "(update complete unit 2>/dev/null)"
complete -c update -n "__fish_update_using_subcommand migrations; and __fish_seen_subcommand_from show" -f -a "(update complete migration 2>/dev/null)"
