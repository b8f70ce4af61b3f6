job "web" {
  group "server" {
    count = attr.cpu.numcores
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
