job "web" {
  type "service"
}
