job "web" { group "server" { count = 1 } }
