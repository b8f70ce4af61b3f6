job "web" {
  group "server" {
    constraint {
      distinct_hosts = true
      value          = "x"
    }
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
