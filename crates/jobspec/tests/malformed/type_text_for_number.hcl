job "web" {
  group "server" {
    count = "three"
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
